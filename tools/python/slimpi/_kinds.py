# SPDX-License-Identifier: BSD-3-Clause
"""Recognizes the purpose of a collective by the function of PyTorch or DeepSpeed that calls it. A
sum may be of gradients, and a gather may be of the weights with which a layer is about to compute.
Gathers for a checkpoint, for summon_full_params or for GatheredParameters stay exact, as do
parameters that ZeRO 3 keeps on all ranks."""
import contextlib
import functools
import itertools
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
_here = threading.local()  # kind; sums, pieces and padding: see row_of()
_collectives_of = lambda group: None  # returns the Collectives of a process group


def kind():
    """Returns GRADIENTS, WHOLE or CHANGES while this thread is in a recognized function, else
    None."""
    return getattr(_here, "kind", None)


@contextlib.contextmanager
def doing(kind, sums=(), pieces=None, padding=()):
    """Within it, this thread makes collectives of a kind. The other arguments: see row_of()."""
    before = dict(vars(_here))
    vars(_here).update(kind=kind, sums=sums, pieces=pieces, padding=padding)
    try:
        yield
    finally:
        vars(_here).clear()
        vars(_here).update(before)


def row_of(collectives, length):
    """Returns (pieces, padding) of the rows of `length` elements that PyTorch or DeepSpeed now sums
    or gathers in this thread over the group of `collectives`.

    pieces: the lengths of a row's pieces, one of each parameter, which are the same on all ranks of
        the group; None if they are not known, and [] if the row has another length than they have.
    padding: (first element, count) of each part of this rank's tensor that has no value."""
    if collectives not in getattr(_here, "sums", ()):
        return None, ()
    pieces = getattr(_here, "pieces", None)
    if pieces and sum(pieces) != length:
        return [], ()
    return pieces, getattr(_here, "padding", ())


def _rounds(group):
    """Returns whether gathers of weights of this process group may be compressed."""
    gathers = getattr(_collectives_of(group), "weights", None)
    return gathers is not None and gathers.any()


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


def _padding_of(pieces, values):
    """Returns the padding of a row of pieces that begin with so many values each."""
    ends = itertools.accumulate(pieces)
    return [(end - piece + own, piece - own)
            for end, piece, own in zip(ends, pieces, values) if own < piece]


def _gathers_fsdp2(names):
    parameters = names["fsdp_params"]
    # With reshard_after_forward=N the backward pass gathers weights that have been rounded for the
    # forward pass. An extension, such as that of float8, may gather scales beside the weights.
    if not _rounds(names["group"]) or any(
            one.sharded_state.name == "SHARDED_POST_FORWARD"
            or hasattr(one._sharded_local_tensor, "fsdp_pre_all_gather") for one in parameters):
        return contextlib.nullcontext()
    pieces = [one._sharded_param_data.numel() for one in parameters]
    return doing(WHOLE, [_collectives_of(names["group"])], pieces, _padding_of(
        pieces, [one._sharded_local_tensor.numel() for one in parameters]))


def _watch_fsdp2(module):
    _late.within(_reduces_fsdp2, module, "foreach_reduce")
    _late.within(_gathers_fsdp2, module, "foreach_all_gather")


def _padding_fsdp1(handle):
    """Returns the padding of this shard: what aligns the parameters of use_orig_params, which
    is 42, and what makes all shards equally long."""
    flat, first = handle.flat_param, handle.rank * handle.flat_param._sharded_size.numel()
    last, end, parts = first + flat._sharded_size.numel(), 0, []
    lengths = getattr(flat, "_numels_with_padding", flat._numels)
    marks = getattr(flat, "_is_padding_mask", [False] * len(lengths))
    for length, is_padding in (*zip(lengths, marks), (math.inf, True)):
        begin, end = end, end + length
        if is_padding and parts and parts[-1][1] == begin:
            parts[-1][1] = end
        elif is_padding:
            parts.append([begin, end])
    return [(max(begin, first) - first, min(end, last) - max(begin, first))
            for begin, end in parts if begin < last and end > first]


def _watch_fsdp1(module):
    """Recognizes FSDP1's gathers of weights. They share one function, and the state of training
    says what a gather is for."""
    handle, states = module.FlatParamHandle, module.HandleTrainingState

    def gathers(names):
        handle = names["self"]
        if handle._training_state not in (states.FORWARD, states.BACKWARD_PRE):
            return doing(None)
        if not _rounds(handle.process_group):
            return contextlib.nullcontext()
        return doing(WHOLE, [_collectives_of(handle.process_group)], None, _padding_fsdp1(handle))

    @_late.replace(handle, "needs_unshard")
    def needs_unshard(needs, self):
        # Without another gather, summon_full_params would return, and later write back, the rounded
        # weights of the last forward pass.
        if (self._training_state == states.SUMMON_FULL_PARAMS and not needs(self)
                and self.uses_sharded_strategy and _rounds(self.process_group)
                and not getattr(self, "_slimpi_exact", False)):
            module._free_storage(self._get_padded_unsharded_flat_param())
        self._slimpi_exact = self._training_state == states.SUMMON_FULL_PARAMS
        return needs(self)

    _late.within(gathers, handle, "_all_gather_flat_param")


def _groups_zero_3(params, type_of):
    """Returns lists of the parameters that ZeRO 3 gathers in one collective each. type_of: returns
    the type in which it gathers a parameter."""
    lists = {}
    for one in sorted(params, key=lambda one: one.ds_id):
        lists.setdefault((id(one.ds_process_group), type_of(one, one.ds_tensor),
                          _secondary(one) is None), []).append(one)
    return lists.values()


def _secondary(parameter):
    """Returns the tensor of a node's own shards that ZeRO++ keeps; None if there is none."""
    return getattr(parameter, "ds_secondary_tensor", None)


def _gathers_zero_3(params):
    """The gather has a piece of each parameter. Behind the last value of a parameter are bits that
    DeepSpeed has never set. A secondary tensor has been rounded by the gather that made it."""
    if _secondary(params[0]) is not None:
        return doing(None)
    sums = _collectives_of(params[0].ds_process_group)
    pieces = [one.ds_tensor.ds_numel for one in params]
    return doing(WHOLE, [sums], pieces, _padding_of(pieces, [
        min(max(one.ds_numel - sums.rank * piece, 0), piece)
        for one, piece in zip(params, pieces)]) if sums else ())


class _Handles:
    """Stands for the handles of several gathers, each of which DeepSpeed may wait for only once."""

    def __init__(self, handles):
        self._handles = list(handles)

    def wait(self, **options):
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.wait(**options)


def _watch_zero_3(module):
    missing = module.ZeroParamStatus.NOT_AVAILABLE
    type_of = getattr(module, "get_allgather_dtype", lambda one, tensor: tensor.dtype)

    @_late.replace(module.PartitionedParameterCoordinator,
                   "_PartitionedParameterCoordinator__all_gather_params_")
    def all_gather_params(gather, self, params, forward, quantize=False):
        now = [one for one in params if one.ds_status == missing]
        groups = {id(one.ds_process_group): one.ds_process_group for one in now}
        if not any(map(_rounds, groups.values())):
            gather(self, params, forward, quantize)
            return
        kept = [one for one in now if one.ds_persist]
        gather(self, kept, forward, quantize)
        others = [one for one in now if not one.ds_persist]
        if quantize:  # ZeRO++ gathers scales
            with doing(None):
                gather(self, others, forward, quantize)
        else:
            for together in _groups_zero_3(others, type_of):
                with _gathers_zero_3(together):
                    gather(self, together, forward, quantize)
        # A wait for one of them is a wait for all, as DeepSpeed expects of one gather. Otherwise
        # some would still be in flight in GatheredParameters.
        registry = getattr(self, "_PartitionedParameterCoordinator__inflight_param_registry")
        handles = _Handles({id(registry[one]): registry[one] for one in now}.values())
        registry.data.update((one, handles) for one in now)


def _reduces_zero_3(names):
    """The sum has, for each rank, a piece of each gradient. Behind the last value of a gradient are
    bits that DeepSpeed has never set."""
    if "tensors" not in names:  # DeepSpeed's decorators hide the names of the arguments
        given = (*names.get("args", ()), *names.get("kwargs", {}).values())
        names = dict(zip(("tensors", "group"), given))
    import torch.distributed as dist
    sums = _collectives_of(names.get("group") or dist.group.WORLD)
    if sums is None:
        return contextlib.nullcontext()
    lengths = [tensor.numel() for tensor in names["tensors"]]
    pieces = [-(-length // sums.size) for length in lengths]
    firsts, row, padding = itertools.accumulate([0] + pieces), sum(pieces), []
    for first, length, piece in zip(firsts, lengths, pieces):
        for rank in range(length // piece if piece else sums.size, sums.size):
            own = max(length - rank * piece, 0)
            padding.append((rank * row + first + own, piece - own))
    return doing(GRADIENTS, [sums], pieces, sorted(padding))


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
    for name in ("comm.coalesced_collectives", "zero.stage3"):
        _late.after(f"deepspeed.runtime.{name}", functools.partial(
            _late.within, _reduces_zero_3, name="reduce_scatter_coalesced"))
    _late.after("deepspeed.runtime.zero.partition_parameters", _watch_gathered)
