# SPDX-License-Identifier: BSD-3-Clause
"""Functions that slimpi-run --torch puts in the place of functions of torch.distributed. They hand
float sums to MPI whatever backend the process group has, such as nccl. All other calls go to the
backend, and the groups stay as the program made them."""
import inspect
import weakref

from . import _kinds, _late, _launcher

active = False  # whether this process is a rank of the job, after init_process_group
refused = lambda collectives: None  # called where a group cannot use MPI
_groups = {}    # Collectives by process group


def _join(module, group):
    """Makes the Collectives of a new group, unless slimpi's backend has already made them.
    Collective over the group's ranks."""
    from ._agreement import name_of, timeout_of
    from ._collectives import Collectives
    from ._join import of_attempt
    if not active or module._rank_not_in_group(group) or hasattr(group, "collectives"):
        return
    backend, size = str(module.get_backend(group)), module.get_world_size(group)
    # "mpi" is PyTorch's own backend for MPI; the ranks of "fake" do not exist.
    if backend in ("mpi", "fake") or size > (_launcher.size() or size):
        return
    name, reference = name_of(group), weakref.ref(group)  # PyTorch's store ends with the group
    found = _groups[group] = Collectives(
        module.get_rank(group), size, lambda: timeout_of(reference()), backend,
        of_attempt(module._world.pg_map[group][1]), lambda: name)
    if found.refusal:
        refused(found)
    elif found.is_one_node():  # MPI would only be slower
        found.leave("of one node")


def collectives_of(group):
    """Returns the Collectives of a process group of any backend; None if slimpi makes no sums for
    it."""
    return getattr(group, "collectives", None) or _groups.get(group)


def _change(module, function, inputs, outputs, name):
    if not hasattr(module, function):
        return
    signature, gathers = inspect.signature(getattr(module, function)), "gather" in name

    @_late.replace(module, function)
    def call(function, *arguments, **keywords):
        if not active or not module.is_initialized() or (
                gathers and _kinds.kind() not in _kinds.WEIGHTS):
            return function(*arguments, **keywords)
        try:
            bound = signature.bind(*arguments, **keywords)
        except TypeError:  # PyTorch reports it
            return function(*arguments, **keywords)
        bound.apply_defaults()
        names, work = bound.arguments, None
        tensors, results = (one if isinstance(one, (list, tuple)) else [one]
                            for one in (names[inputs], names[outputs]))
        group = names["group"] or module._get_default_group()
        # PyTorch reports what is not a tensor.
        if (group in _groups and group not in module._world.pg_coalesce_state and all(
                isinstance(one, module.torch.Tensor) for one in (*tensors, *results))):
            work = _groups[group].take(name, tensors, list(results),
                                       names.get("op", module.ReduceOp.SUM))
        if not work:
            return function(*arguments, **keywords)
        if names["async_op"]:
            return work
        work.wait()


# For each function: the name of its argument with the input, that of the argument for the result,
# and the name of the call for Collectives.take().
_FUNCTIONS = {"all_reduce": ("tensor", "tensor", "all_reduce"),
              "reduce_scatter": ("input_list", "output", "reduce_scatter"),
              "reduce_scatter_tensor": ("input", "output", "reduce_scatter_tensor"),
              "reduce_scatter_single": ("input", "output", "reduce_scatter_tensor"),
              "all_gather": ("tensor", "tensor_list", "all_gather"),
              "all_gather_into_tensor": ("input_tensor", "output_tensor", "all_gather"),
              "all_gather_single": ("input_tensor", "output_tensor", "all_gather")}


def begin(module):
    """Makes the Collectives of the default group. Called after init_process_group, if this process
    is a rank of the job."""
    global active
    active = True
    _join(module, module._get_default_group())


def change(module):
    """Replaces the functions in `module`, which is torch.distributed.distributed_c10d."""
    for name, names in _FUNCTIONS.items():
        _change(module, name, *names)
    for name in ("new_group", "split_group"):
        @_late.replace(module, name)
        def make(function, *arguments, **keywords):
            group = function(*arguments, **keywords)
            if group not in (None, module.GroupMember.NON_GROUP_MEMBER):
                _join(module, group)
            return group

    @_late.replace(module, "destroy_process_group")
    def destroy_process_group(destroy, group=None):
        everything = group in (None, module.GroupMember.WORLD)
        for one in list(_groups) if everything else [group]:
            if one in _groups:
                _groups.pop(one).free()
        destroy(group)
