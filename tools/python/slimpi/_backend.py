# SPDX-License-Identifier: BSD-3-Clause
"""The backend "slimpi" of torch.distributed. Sums of floats of at least SLIMPI_MIN_SIZE go to MPI,
where slimpi compresses them; gloo does everything else."""
import functools
import re
import sys
import weakref

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import AllreduceCoalescedOptions, ProcessGroup, ReduceOp

from . import _kinds, _seen
from ._agreement import name_of, seconds_of
from ._collectives import Collectives
from ._goodbye import Connections
from ._join import of_attempt
from ._work import SumWork

_COLLECTIVE = (r"(?!__).*(reduce|gather|scatter|broadcast|send|recv|barrier|all_?to_?all|coalesc|"
               "sequence)")


def _register(group, gloo):
    kind = ProcessGroup.BackendType.GLOO
    if hasattr(group, "_set_default_backend"):
        group._set_default_backend(kind)
    for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
        group._register_backend(torch.device(device), kind, gloo)


def _is_by_hand():
    """Returns whether the program asked for a collective by a function of torch.distributed. If
    not, C++ code did, for DTensor or functional collectives. Called by the method of Group that got
    the call."""
    caller = sys._getframe(2).f_back  # None in a thread of C++
    return caller is not None and (
        caller.f_globals.get("__name__") == "torch.distributed.distributed_c10d")


def _options(kind, opts, timeout):
    """Returns the options of a call, of the class `kind`. opts: such options, or an operation,
    because PyTorch's methods for one tensor take an operation and a timeout, which may be None."""
    if not isinstance(opts, kind):
        operation, opts = opts, kind()
        opts.reduceOp = operation
        if timeout is not None:
            opts.timeout = timeout
    return opts


class Group(ProcessGroup):
    """A process group of gloo that hands some of its sums to MPI. The constructor is collective
    over the ranks of the group."""

    def __init__(self, store, rank, size, timeout):
        try:
            super().__init__(store, rank, size)  # split_group uses the store
        except TypeError:  # PyTorch before 2.6
            super().__init__(rank, size)
        store = of_attempt(store)
        # The store may have been used by an earlier group of this name: torchrun keeps one store
        # when the program destroys its default group and makes another. A number in the prefix
        # keeps gloo from finding addresses of the earlier group.
        made = (store.add("made", 1) - 1) // size
        store = dist.PrefixStore(str(made), store)
        gloo = dist.ProcessGroupGloo(store, rank, size, timeout=timeout)
        self._gloo = ProcessGroup(rank, size)
        self.of_gradients = _OfGradients(rank, size)
        for group in (self, self._gloo, self.of_gradients):
            _register(group, gloo)
        me = weakref.ref(self)
        self.collectives = Collectives(rank, size, functools.partial(seconds_of, gloo), "gloo",
                                       store, lambda: name_of(me()))
        self.collectives.close = Connections(store, rank).close
        self.of_gradients._gloo, self.of_gradients.collectives = self._gloo, self.collectives

    def getBackendName(self):
        return "slimpi"

    def shutdown(self):
        """Ends the group. destroy_process_group calls it after all sums have ended."""
        self.collectives.free()
        if hasattr(ProcessGroup, "shutdown"):
            self._gloo.shutdown()

    def _by_gloo(self, results, opts, function):
        """Makes a sum by gloo. function(opts): calls gloo with these options."""
        if not opts.reduceOp == ReduceOp.AVG:
            return function(opts)
        opts.reduceOp = ReduceOp.SUM  # gloo has no AVG, so the sum is divided here
        work = function(opts)
        opts.reduceOp = ReduceOp.AVG

        def divide():
            work.wait()
            for result in results:
                result.detach().div_(self.size())

        return self.collectives.submit("the mean by gloo", results, divide)

    def _take(self, name, tensors, results, opts, by_gloo):
        by_hand = _is_by_hand()
        work = (self.collectives.take(name, tensors, results, opts.reduceOp, by_hand)
                or self._by_gloo(results, opts, by_gloo))
        if not by_hand and isinstance(work, SumWork):  # for C++ code
            work.hold()
        return work

    def allreduce(self, tensors, opts=ReduceOp.SUM, timeout=None, op=None):
        if isinstance(tensors, torch.Tensor):
            tensors = [tensors]
        opts = _options(dist.AllreduceOptions, opts if op is None else op, timeout)
        return self._take("all_reduce", tensors, tensors, opts,
                          lambda opts: self._gloo.allreduce(tensors, opts))

    def allreduce_coalesced(self, tensors, opts=None):
        opts = opts or AllreduceCoalescedOptions()
        return self._take("all_reduce_coalesced", tensors, tensors, opts,
                          lambda opts: self._gloo.allreduce_coalesced(tensors, opts))

    def reduce(self, tensors, *options, **keywords):
        whole = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        _seen.count("reduce", _seen.bytes_of(whole), "reduce to one rank", "gloo")
        return self._gloo.reduce(tensors, *options, **keywords)

    def reduce_scatter(self, outputs, inputs, opts=ReduceOp.SUM, timeout=None, op=None):
        if isinstance(outputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        opts = _options(dist.ReduceScatterOptions, opts if op is None else op, timeout)
        return self._take(
            "reduce_scatter", inputs[0] if len(inputs) == 1 else [], outputs, opts,
            lambda opts: self._gloo.reduce_scatter(outputs, inputs, opts))


def _of_tensors(name):
    """Returns the method for a reduce-scatter of one tensor, or of several if the name ends in
    "_coalesced". The name differs between versions of PyTorch."""
    coalesced = "_coalesced" if name.endswith("_coalesced") else ""

    def function(self, outputs, inputs, opts=None):
        results, tensors = (outputs, inputs) if coalesced else ([outputs], [inputs])
        return self._take(
            f"reduce_scatter_tensor{coalesced}", tensors, results,
            opts or dist.ReduceScatterOptions(),
            lambda opts: getattr(self._gloo, name)(outputs, inputs, opts))

    return function


def _of_gloo(name):
    """Returns a method that calls gloo's method of this name. The inherited method would deadlock:
    it takes the interpreter's lock to look for a Python method and keeps it while it waits for
    gloo's lock, but gloo's threads take the two locks in the other order."""
    def function(self, *arguments, **keywords):
        return getattr(self._gloo, name)(*arguments, **keywords)

    return function


def _of_weights(name):
    """Returns the all_gather method of this name. It compresses gathers of weights; for others it
    costs one call more than gloo's method."""
    by_gloo = _of_gloo(name)

    def function(self, outputs, tensor, *options, **keywords):
        if _kinds.kind() not in _kinds.WEIGHTS:
            return by_gloo(self, outputs, tensor, *options, **keywords)
        lists = name == "allgather" and not isinstance(tensor, torch.Tensor)
        work = self.collectives.take(
            "all_gather", [tensor[0] if lists else tensor],
            outputs[0] if lists else outputs if name == "allgather" else [outputs])
        return work or by_gloo(self, outputs, tensor, *options, **keywords)

    return function


_OF_TENSORS = ("_reduce_scatter_base", "reduce_scatter_single", "reduce_scatter_tensor_coalesced",
               "reduce_scatter_single_coalesced")
_OF_WEIGHTS = "allgather", "_allgather_base", "all_gather_single"
for _name in dir(ProcessGroup):  # the names differ between versions of PyTorch
    if _name not in vars(Group) and re.match(_COLLECTIVE, _name):
        setattr(Group, _name, (_of_tensors if _name in _OF_TENSORS else
                               _of_weights if _name in _OF_WEIGHTS else _of_gloo)(_name))


class _OfGradients(Group):
    """Stands for a Group in the C++ code of DistributedDataParallel. All floats that this code sums
    are gradients, so every sum is taken for one of gradients."""

    def __init__(self, rank, size):
        ProcessGroup.__init__(self, rank, size)

    def _take(self, *arguments):
        with _kinds.doing(_kinds.GRADIENTS):
            return super()._take(*arguments)
