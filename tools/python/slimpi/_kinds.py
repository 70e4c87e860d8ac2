# SPDX-License-Identifier: BSD-3-Clause
"""Recognizes the purpose of a collective by the function of PyTorch or DeepSpeed that calls it. A
sum may be of gradients, and a gather may be of the weights with which a layer is about to compute.
Gathers for a checkpoint, for summon_full_params or for GatheredParameters stay exact, as do
parameters that ZeRO 3 keeps on all ranks."""
import contextlib
import functools
import math
import threading

from . import _late

GRADIENTS = "gradients"
WHOLE, CHANGES = "whole", "changes"  # of weights: all of them, or how they differ from old copies
WEIGHTS = WHOLE, CHANGES

# Functions that are recognized by their names alone, listed by the module that calls them. They are
# changed in that module, which works even if slimpi is imported late.
_FUNCTIONS = {
    "torch.distributed.fsdp._runtime_utils": {GRADIENTS: ("_reduce_grad", "_reduce_grad_no_shard")},
    "torch.distributed.algorithms.ddp_comm_hooks.default_hooks": {GRADIENTS: ("_allreduce_fut",)},
    "torch.nn.parallel.distributed": {
        GRADIENTS: ("DistributedDataParallel._delayed_all_reduce_hook",)},
    "deepspeed.runtime.engine": {GRADIENTS: ("DeepSpeedEngine.allreduce_bucket",)},
    "deepspeed.runtime.zero.stage_1_and_2": {
        GRADIENTS: ("DeepSpeedZeroOptimizer.allreduce_bucket",
                    "DeepSpeedZeroOptimizer.gradient_reduction_w_predivide"),
        CHANGES: ("all_gather_dp_groups",)},
    "deepspeed.runtime.bf16_optimizer": {CHANGES: ("all_gather_dp_groups",)},
    "deepspeed.runtime.zenflow.zenflow_stage_1_and_2": {CHANGES: ("all_gather_dp_groups",)},
    "deepspeed.runtime.zero.stage3": {GRADIENTS: (
        "DeepSpeedZeroOptimizer_Stage3.allreduce_bucket",
        "DeepSpeedZeroOptimizer_Stage3._DeepSpeedZeroOptimizer_Stage3__avg_scatter_grads",
        "DeepSpeedZeroOptimizer_Stage3._DeepSpeedZeroOptimizer_Stage3__avg_scatter_contiguous_grads"
    )},
    "deepspeed.runtime.zero.partition_parameters": {GRADIENTS: ("Init._reduce_scatter_gradient",)},
}
_here = threading.local()  # kind; sums and pieces: see pieces_of_row()
_collectives_of = lambda group: None  # returns the Collectives of a process group


def kind():
    """Returns GRADIENTS, WHOLE or CHANGES while this thread is in a recognized function, else
    None."""
    return getattr(_here, "kind", None)


@contextlib.contextmanager
def doing(kind, sums=(), pieces=None):
    """A context in which the collectives of this thread have this kind. sums, pieces: see
    pieces_of_row()."""
    before = dict(vars(_here))
    vars(_here).update(kind=kind, sums=sums, pieces=pieces)
    try:
        yield
    finally:
        vars(_here).clear()
        vars(_here).update(before)


def pieces_of_row(collectives, length):
    """Returns the lengths of the pieces of a row, one for each parameter, if fully_shard now sums
    or gathers rows of `length` elements in this thread over the group of `collectives`; else None.
    All ranks of the group get the same result."""
    pieces = getattr(_here, "pieces", None)
    if not pieces or sum(pieces) != length or collectives not in getattr(_here, "sums", ()):
        return None
    return pieces


def _rounds(group):
    """Returns whether this process group compresses its gathers of weights."""
    return getattr(_collectives_of(group), "weights", None) is not None


def _watch_functions(kinds, module):
    for kind, names in kinds.items():
        for name in names:
            owner, _, function = name.rpartition(".")
            owner = getattr(module, owner, None) if owner else module
            _late.within(functools.partial(_of_kind, kind), owner, function)


def _of_kind(kind, names):
    return doing(kind)


def _note_pieces(names):
    """Notes the pieces of the sum that the present call of foreach_reduce makes in this thread."""
    gradients, _, size = names.values()
    _here.pieces = [-(-len(gradient) // size) * math.prod(gradient.shape[1:])
                    for gradient in gradients]
    return contextlib.nullcontext()


def _reduces_fsdp2(names):
    """The context of a call of foreach_reduce. The pieces are noted only for the two groups whose
    ranks all call it for the same parameters."""
    return doing(GRADIENTS, [_collectives_of(names[name]) for name in (
        "reduce_scatter_group", "all_reduce_group") if names.get(name) is not None])


def _piece(parameter):
    """Returns how many elements of a parameter of fully_shard this rank has."""
    after = parameter.sharded_state.name == "SHARDED_POST_FORWARD"
    return (parameter._sharded_post_forward_param_data if after else
            parameter._sharded_param_data).numel()


def _gathers_fsdp2(names):
    parameters = names["fsdp_params"]
    # An extension, such as that of float8, may gather scales with the weights.
    if not _rounds(names["group"]) or any(
            hasattr(one._sharded_local_tensor, "fsdp_pre_all_gather") for one in parameters):
        return contextlib.nullcontext()
    return doing(WHOLE, [_collectives_of(names["group"])], list(map(_piece, parameters)))


def _watch_fsdp2(module):
    _late.within(_reduces_fsdp2, module, "foreach_reduce")
    _late.within(_gathers_fsdp2, module, "foreach_all_gather")


def _watch_fsdp1(module):
    """Recognizes FSDP1's gathers of weights. They share one function, and the state of training
    says what a gather is for."""
    handle, states = module.FlatParamHandle, module.HandleTrainingState
    needs = handle.needs_unshard

    def gathers(names):
        computes = names["self"]._training_state in (states.FORWARD, states.BACKWARD_PRE)
        return doing(WHOLE if computes else None)

    @functools.wraps(needs)
    def needs_unshard(self):
        # Without another gather, summon_full_params would return, and later write back, the rounded
        # weights of the last forward pass.
        if (self._training_state == states.SUMMON_FULL_PARAMS and not needs(self)
                and self.uses_sharded_strategy and _rounds(self.process_group)
                and not getattr(self, "_slimpi_exact", False)):
            module._free_storage(self._get_padded_unsharded_flat_param())
        self._slimpi_exact = self._training_state == states.SUMMON_FULL_PARAMS
        return needs(self)

    _late.within(gathers, handle, "_all_gather_flat_param")
    handle.needs_unshard = needs_unshard


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
        with doing(None if quantize else WHOLE):  # ZeRO++ gathers scales
            gather(self, [one for one in params if not one.ds_persist], forward, quantize)

    setattr(coordinator, name, all_gather_params)


def _watch_gathered(module):
    available = module.ZeroParamStatus.AVAILABLE

    def enters(names):
        self = names["self"]
        for one in self.params if self.enabled else ():
            if (one.ds_status == available and not one.ds_persist and not one.ds_active_sub_modules
                    and _rounds(one.ds_process_group)):
                one.partition()  # rounded by the last forward pass
        return contextlib.nullcontext()

    _late.within(enters, module.GatheredParameters, "__enter__")


def watch(collectives_of):
    global _collectives_of
    _collectives_of = collectives_of
    for name, kinds in _FUNCTIONS.items():
        _late.after(name, functools.partial(_watch_functions, kinds))
    for package in ("fsdp._fully_shard", "_composable.fsdp"):  # the second name until PyTorch 2.5
        _late.after(f"torch.distributed.{package}._fsdp_param_group", _watch_fsdp2)
        _late.after(f"torch.distributed.{package}._fsdp_collectives", functools.partial(
            _late.within, _note_pieces, name="foreach_reduce_scatter_copy_in"))
    _late.after("torch.distributed.fsdp._flat_param", _watch_fsdp1)
    _late.after("deepspeed.runtime.zero.partitioned_param_coordinator", _watch_zero_3)
    _late.after("deepspeed.runtime.zero.partition_parameters", _watch_gathered)
