# SPDX-License-Identifier: BSD-3-Clause
"""Gives each DistributedDataParallel model slimpi's hook, until the program registers its own."""
import os

from . import _functions, _late, _threads
from ._mpi import Error
from ._tell import is_child, is_rank, of_one_node, of_other_sums, say


class _Holder:
    """Holds the hook of one model, which is slimpi's until the program registers another. nodes: on
    how many nodes the model's ranks are."""

    def __init__(self, state, hook, rank, nodes):
        self.state, self.hook, self.rank, self.nodes, self.said = state, hook, rank, nodes, False

    def __reduce__(self):
        """Makes a copy of the holder None. A copy of the model by pickle or copy.deepcopy thus has
        no hook and gets PyTorch's own sums, as it would without slimpi."""
        return type(None), ()


def _is_state(state):
    """Returns whether `state` is slimpi's. The class decides, because a program's own state may
    have any attributes."""
    from . import torch as slimpi_torch
    return isinstance(state, slimpi_torch.State)


def _run_hook(holder, bucket):
    """Runs the hook in the holder. PyTorch calls this function for each bucket; the first call
    prints who makes the sums."""
    if not holder.said:
        holder.said = True
        if _is_state(holder.state) and holder.rank == 0:
            import torch.distributed as dist
            group = holder.state.process_group
            feedback = ", with error feedback" * holder.state.feedback
            say(f"gradients of DistributedDataParallel ({dist.get_world_size(group)} ranks) "
                      f"are summed by {holder.state.describe()}{feedback}; "
                      f"{of_other_sums(dist.get_backend(group))}"
                      f"{of_one_node(holder.nodes)}")
    return holder.hook(holder.state, bucket)


def _new_state(model, rank):
    """Returns a State for a model; None if the backend keeps the model's sums. Collective over the
    model's ranks."""
    import torch.distributed as dist
    from . import torch as slimpi_torch
    try:
        return slimpi_torch.State(model.process_group, model=model)
    except Error as error:  # all ranks get the same error
        collectives = getattr(model.process_group, "collectives", None)
        if rank == 0 and not getattr(collectives, "refusal", None):  # the refusal was said already
            by = ("are sums of torch.distributed" if collectives
                  else f"stay with {dist.get_backend(model.process_group)}")
            say(f"gradients {by}: {error}")
        return None


def _add_hook(model, register):
    """Registers slimpi's hook in a new model and limits the threads of its ranks. Collective over
    the model's ranks. register: PyTorch's register_comm_hook."""
    import torch
    import torch.distributed as dist
    from . import torch as slimpi_torch
    group = model.process_group
    rank = dist.get_rank(group)
    state = _new_state(model, rank)
    if state is None:
        return
    answers, collectives = [None] * state.world_size, _functions.collectives_of(group)
    hooked = bool(collectives and collectives.hooked)
    dist.all_gather_object(answers, (os.uname().nodename, _threads.place(), hooked), group=group)
    nodes, backend = len({host for host, _, _ in answers}), dist.get_backend(group)
    if collectives and not any(hooked for _, _, hooked in answers):
        collectives.hooked = None
    if "nccl" in backend and _threads.is_one_node(nodes):
        if rank == 0:
            say(f"gradients stay with {backend}{of_one_node(nodes)}")
        return
    model.__dict__["_slimpi_holder"] = _Holder(state, slimpi_torch.hook, rank, nodes)
    register(model, model.__dict__["_slimpi_holder"], _run_hook)
    # With its entry in this list, a pickled model would need slimpi to load. Only the Python
    # reducer reads the list, and State refuses that reducer.
    getattr(model, "_comm_hooks", []).clear()
    changed = _threads.limit(torch, [place for _, place, _ in answers], rank)
    if changed and rank == 0:
        say(changed)


def _replace_hook(model, state, hook):
    """Replaces slimpi's hook in a model by the program's. Returns False if the model has no hook of
    slimpi's, so that PyTorch must register the program's."""
    if not _is_state(state):
        for group in model.process_group, getattr(state, "process_group", None):
            if collectives := _functions.collectives_of(group):
                collectives.leave_to_hook(model)
    holder = model.__dict__.get("_slimpi_holder")
    if holder is None or not _is_state(holder.state):  # PyTorch refuses a second hook
        return False
    model._check_comm_hook(hook)
    holder.state, holder.hook = state, hook
    if holder.rank == 0:
        if _is_state(state):
            holder.said = False
        else:
            say(f"the program's own hook sums the gradients: {hook.__qualname__}")
    return True


def _say_if_child(model):
    """Says, on rank 0 of a model of several ranks, that slimpi does not sum its gradients because a
    rank of the job has started this process."""
    import torch.distributed as dist
    group = model.process_group
    if is_child() and dist.get_world_size(group) > 1 and dist.get_rank(group) == 0:
        say(f"gradients stay with {dist.get_backend(group)}, because a rank of the job has started "
            "this process: train the model in a job of its own, which slimpi-run --torch starts")


def change_in_child(module):
    """Makes DistributedDataParallel say that slimpi does not sum its gradients. Called in a process
    that a rank has started."""
    @_late.replace(module.DistributedDataParallel, "__init__")
    def made(init, self, *arguments, **keywords):
        init(self, *arguments, **keywords)
        _say_if_child(self)


def change(module):
    """Changes DistributedDataParallel in `module`, which the program has just imported."""
    import torch
    _threads.watch(torch)
    model = module.DistributedDataParallel
    register = model.register_comm_hook

    @_late.replace(model, "__init__")
    def made(init, self, *arguments, **keywords):
        init(self, *arguments, **keywords)
        if is_rank():
            _add_hook(self, register)
        _say_if_child(self)

    @_late.replace(model, "register_comm_hook")
    def register_comm_hook(register, self, state, hook):
        if not _replace_hook(self, state, hook):
            register(self, state, hook)

    @_late.replace(model, "_register_builtin_comm_hook")
    def register_builtin(builtin, self, kind):
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
        hook = (default_hooks.fp16_compress_hook if "FP16" in str(kind)
                else default_hooks.allreduce_hook)
        if not _replace_hook(self, self.process_group, hook):
            builtin(self, kind)
