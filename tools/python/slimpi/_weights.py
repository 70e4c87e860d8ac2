# SPDX-License-Identifier: BSD-3-Clause
"""Finds out which gathers of torch.distributed are of weights: those by the functions with which
PyTorch and DeepSpeed gather parameters for computing. What is gathered for a checkpoint, for
summon_full_params or for GatheredParameters stays exact, as do parameters that ZeRO 3 keeps on all
ranks."""
import contextlib
import functools
import inspect
import threading

from . import _late
from ._parameters import pieces_in

WHOLE, CHANGES = "whole", "changes"  # what is sent: weights, or how they differ from old copies
_here = threading.local()
_collectives_of = lambda group: None  # returns the Collectives of a process group


def kind():
    """Returns WHOLE or CHANGES in a function that gathers weights, else None."""
    return getattr(_here, "kind", None)


@contextlib.contextmanager
def _gathering(what):
    before, _here.kind = kind(), what
    try:
        yield
    finally:
        _here.kind = before


def _rounds(group):
    """Returns whether gathers of weights of this process group are compressed."""
    return getattr(_collectives_of(group), "weights", None) is not None


def _pieces(parameter):
    """Returns the elements of a parameter of fully_shard that this rank has."""
    after = parameter.sharded_state.name == "SHARDED_POST_FORWARD"
    return (parameter._sharded_post_forward_param_data if after else
            parameter._sharded_param_data).numel()


def _watch_fsdp2(module):
    gather = module.foreach_all_gather
    signature = inspect.signature(gather)

    @functools.wraps(gather)
    def foreach_all_gather(*arguments, **keywords):
        names = signature.bind(*arguments, **keywords).arguments
        parameters, of_group = names["fsdp_params"], _collectives_of(names["group"])
        # An extension, such as that of float8, may gather scales beside the weights.
        extended = any(hasattr(one._sharded_local_tensor, "fsdp_pre_all_gather")
                       for one in parameters)
        if of_group is None or extended or not _rounds(names["group"]):
            return gather(*arguments, **keywords)
        with _gathering(WHOLE), pieces_in([of_group], [_pieces(one) for one in parameters]):
            return gather(*arguments, **keywords)

    module.foreach_all_gather = foreach_all_gather


def _watch_fsdp1(module):
    """FSDP1 has one function for all gathers. The state of training says what a gather is for."""
    handle, states = module.FlatParamHandle, module.HandleTrainingState
    gather, needs = handle._all_gather_flat_param, handle.needs_unshard

    @functools.wraps(gather)
    def _all_gather_flat_param(self, padded):
        computes = self._training_state in (states.FORWARD, states.BACKWARD_PRE)
        with _gathering(WHOLE if computes else None):
            return gather(self, padded)

    @functools.wraps(needs)
    def needs_unshard(self):
        # summon_full_params would return, and write back, what the forward pass has left.
        if (self._training_state == states.SUMMON_FULL_PARAMS and not needs(self)
                and self.uses_sharded_strategy and _rounds(self.process_group)
                and not getattr(self, "_slimpi_exact", False)):
            module._free_storage(self._get_padded_unsharded_flat_param())
        self._slimpi_exact = self._training_state == states.SUMMON_FULL_PARAMS
        return needs(self)

    handle._all_gather_flat_param, handle.needs_unshard = _all_gather_flat_param, needs_unshard


def _watch_zero_1_2(module):
    gather = module.all_gather_dp_groups

    @functools.wraps(gather)
    def all_gather_dp_groups(*arguments, **keywords):
        with _gathering(CHANGES):
            return gather(*arguments, **keywords)

    module.all_gather_dp_groups = all_gather_dp_groups


def _watch_zero_3(module):
    coordinator = module.PartitionedParameterCoordinator
    name = "_PartitionedParameterCoordinator__all_gather_params_"
    gather = getattr(coordinator, name, None)
    if gather is None:  # an older DeepSpeed
        return

    @functools.wraps(gather)
    def all_gather_params(self, params, forward, quantize=False):
        kept = [one for one in params if one.ds_persist]
        gather(self, kept, forward, quantize)
        with _gathering(None if quantize else WHOLE):  # ZeRO++ gathers scales
            gather(self, [one for one in params if not one.ds_persist], forward, quantize)

    setattr(coordinator, name, all_gather_params)


def _watch_gathered(module):
    enter = module.GatheredParameters.__enter__
    available = module.ZeroParamStatus.AVAILABLE

    @functools.wraps(enter)
    def __enter__(self):
        for one in self.params if self.enabled else ():
            if (one.ds_status == available and not one.ds_persist and not one.ds_active_sub_modules
                    and _rounds(one.ds_process_group)):
                one.partition()  # rounded by the last forward pass
        return enter(self)

    module.GatheredParameters.__enter__ = __enter__


def watch(collectives_of):
    global _collectives_of
    _collectives_of = collectives_of
    for package in ("fsdp._fully_shard", "_composable.fsdp"):  # the second name until PyTorch 2.5
        _late.after(f"torch.distributed.{package}._fsdp_param_group", _watch_fsdp2)
    _late.after("torch.distributed.fsdp._flat_param", _watch_fsdp1)
    for name in ("zero.stage_1_and_2", "bf16_optimizer", "zenflow.zenflow_stage_1_and_2"):
        _late.after(f"deepspeed.runtime.{name}", _watch_zero_1_2)
    _late.after("deepspeed.runtime.zero.partitioned_param_coordinator", _watch_zero_3)
    _late.after("deepspeed.runtime.zero.partition_parameters", _watch_gathered)
