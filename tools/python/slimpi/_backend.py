# SPDX-License-Identifier: BSD-3-Clause
"""The backend "slimpi" of torch.distributed: float sums of SLIMPI_MIN_SIZE and more go to MPI,
where slimpi compresses them. All else is gloo's.

Whether MPI sums a tensor depends on what the ranks of a group have alike: its type, its length and
the operation. Each group has a communicator and a thread of its own, so its sums keep their order,
and no group waits for another.
"""
import json
import os
import re
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroup, ReduceOp, Work

from . import _seen, _threads
from ._agreement import check_answers, describe
from ._mpi import Error
from ._world import Worker, world as _world
from ._parameters import bytes_of
from ._sums import unwrapped
from .torch import OF_MODELS

_FLOAT_BYTES = 4      # 16-bit floats are summed as float32, too
_TYPES = {"float": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
_COLLECTIVE = (r"(?!__).*(reduce|gather|scatter|broadcast|send|recv|barrier|all_?to_?all|coalesc|"
               "sequence)")
_ANSWER_BYTES = 2048  # what a rank tells the others when a group is made
_MOST = 2**31 - 1     # the count of MPI_Reduce_scatter_block is an int
_GRACE_SECONDS = 5    # slimpi has the same timeout, and says more
_POLL_SECONDS = 1     # between two looks for sums that take too long
# Before 2.7, PyTorch's C++ does not keep the Python object of the Work that it holds, and
# DistributedDataParallel asks the Work for its future as soon as it has it.
_KEEPS_WORK = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 7)

lenient = False  # whether a group that cannot use MPI leaves all sums to gloo; else it is refused
tell = lambda group: None  # called before each sum that MPI gets
_pending = set()  # the sums on their way
_watcher = None


def _watch():
    while True:
        time.sleep(_POLL_SECONDS)
        for one in list(_pending):
            if time.monotonic() > one.deadline:
                one.expire()


class _Sum(Work):
    """A sum on its way. An error in the thread is raised by wait() and by the future."""

    def __init__(self, name, tensors, seconds):
        super().__init__()
        self.name, self._tensors, self._seconds, self._error = name, tensors, seconds, None
        self.deadline = time.monotonic() + seconds + _GRACE_SECONDS
        self._ended, self._lock = threading.Event(), threading.Lock()
        self._outcome = torch.futures.Future()
        self._future = self._outcome.then(unwrapped)

    def run(self, function, *arguments):
        """In the group's thread."""
        try:
            with torch.inference_mode():
                function(*arguments)
        except BaseException as error:  # for wait(), whatever it is
            self._end(error)
        else:
            self._end()

    def _end(self, error=None):
        with self._lock:
            if self._outcome.done():
                return
            self._error = error
            self._outcome.set_result(self._tensors if error is None else error)
        _pending.discard(self)
        self._ended.set()

    def expire(self, seconds=None):
        _world().stuck = True
        self._end(Error(f"{self.name} has not ended within {seconds or self._seconds:g} s: a rank "
                        "did not call it, or has ended (init_process_group(timeout=...))"))

    def wait(self, timeout=timedelta(0)):
        seconds = timeout.total_seconds()
        if not self._ended.wait(seconds if seconds > 0 else None):
            self.expire(seconds)
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self):
        self.wait()

    def is_completed(self):
        return self._ended.is_set()

    def is_success(self):
        return self._ended.is_set() and self._error is None

    def exception(self):
        return self._error

    def get_future(self):
        return self._future

    def result(self):
        return self._tensors


def _options_of(world):
    """What decides which sums are taken; alike on all ranks."""
    algorithm = world.mpi.option("algorithm")
    if algorithm in OF_MODELS:
        raise Error(f"{algorithm} averages models, and torch.distributed sums gradients: choose "
                    "another algorithm")
    return {"min_size": world.mpi.option("min_size"), "types": world.mpi.option("types")}


class Group(ProcessGroup):
    """A process group with gloo, some of whose sums go to MPI. Collective over its ranks."""

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self._seconds, self._ranks = timeout.total_seconds(), size
        gloo = dist.ProcessGroupGloo(store, rank, size, timeout=timeout)
        kind = ProcessGroup.BackendType.GLOO
        self._gloo = ProcessGroup(rank, size)
        for group in (self, self._gloo):
            if hasattr(group, "_set_default_backend"):
                group._set_default_backend(kind)
            for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
                group._register_backend(torch.device(device), kind, gloo)
        self._comm, self._worker = None, None
        self._left = "in a group of one rank" if size == 1 else None
        self.nodes, self.refusal = 1, None
        if size > 1:
            self._join(rank)
        if self._worker is None:
            self._worker = Worker()

    def _join(self, rank):
        """Finds the group's ranks in MPI's world."""
        mine = {"error": "", "options": {}, "rank": -1, "size": 0, "number": 0,
                "timeout": max(1, int(self._seconds)), "host": os.uname().nodename,
                "place": _threads.place()}
        try:
            world = _world()
            mine.update(options=_options_of(world), rank=world.rank, size=world.size,
                        number=world.numbers)
        except Error as error:
            mine["error"] = str(error)
        answers = torch.zeros(self._ranks, _ANSWER_BYTES, dtype=torch.uint8)
        text = json.dumps(mine).encode()
        if len(text) > _ANSWER_BYTES:
            text = json.dumps(dict(mine, error=mine["error"][:_ANSWER_BYTES // 8])).encode()
        answers[rank, :len(text)] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        self._gloo.allreduce([answers]).wait()
        answers = [json.loads(bytes(answer.tolist()).rstrip(b"\0")) for answer in answers]
        self.nodes = len({answer["host"] for answer in answers})
        self.places = [answer["place"] for answer in answers]
        try:
            self._members, timeout = check_answers(answers, mine)
        except Error as error:
            if not lenient:
                raise
            self._left = self.refusal = str(error)
            return
        # No member has used the number before, so groups of the same ranks have other tags.
        self._number = max(answer["number"] for answer in answers)
        world.numbers = self._number + 1
        self._worker = world.new_worker()
        self._waits = {} if world.mpi.option("timeout") else {"timeout": str(timeout)}
        self._min_size = bytes_of(mine["options"]["min_size"])
        self._types = [_TYPES[name] for name in mine["options"]["types"].split(",")
                       if name in _TYPES]

    def getBackendName(self):
        return "slimpi"

    def shutdown(self):
        """By destroy_process_group, after all sums."""
        if self._comm is not None:
            self._submit("MPI_Comm_free", [], _world().free, self._comm)
        if hasattr(ProcessGroup, "shutdown"):
            self._gloo.shutdown()

    def leave(self, reason):
        """Leaves all sums from now on to gloo. On all ranks."""
        self._left = self._left or reason

    def _reason(self, tensors, op):
        """Why gloo sums these; None where MPI does."""
        if self._left:
            return self._left
        if any(tensor.device.type != "cpu" for tensor in tensors):
            return "on a device"
        if any(tensor.layout != torch.strided for tensor in tensors):
            return "sparse"
        others = [tensor.dtype for tensor in tensors if tensor.dtype not in self._types]
        if others:
            return str(others[0]).replace("torch.", "")
        if not (op == ReduceOp.SUM or op == ReduceOp.AVG):
            return "not SUM or AVG"
        if sum(tensor.numel() for tensor in tensors) * _FLOAT_BYTES < self._min_size:
            return "shorter than SLIMPI_MIN_SIZE"
        return None

    def _take(self, name, function, tensors, results, opts, by_gloo, reason=None):
        """Has the thread call the function; calls by_gloo where MPI does not sum these tensors."""
        op = getattr(opts, "reduceOp", opts)
        reason = reason or self._reason(tensors, op)
        _seen.count(name, sum(map(_bytes, tensors)), reason)
        if reason is None:
            tell(self)
            return self._submit(name, results, function, tensors, results, op)
        if not op == ReduceOp.AVG:
            return by_gloo(opts)
        if op is opts:
            opts = dist.AllreduceOptions()
        opts.reduceOp = ReduceOp.SUM  # gloo has no AVG
        work = by_gloo(opts)
        opts.reduceOp = ReduceOp.AVG

        def divide():
            work.wait()
            for result in results:
                result.detach().div_(self._ranks)

        return self._submit(name, results, divide)

    def _submit(self, name, results, function, *arguments):
        global _watcher
        if _watcher is None:
            _watcher = threading.Thread(target=_watch, name="slimpi timeout", daemon=True)
            _watcher.start()
        one = _Sum(name, results, self._seconds)
        _pending.add(one)
        if not _KEEPS_WORK:
            self._last = one
        self._worker.submit(lambda: one.run(function, *arguments))
        return one

    def describe(self):
        return describe(_world().mpi, _world().mpi.option)

    def _communicator(self):
        """In the thread: made at the first sum."""
        if self._comm is None:
            self._comm = _world().new_communicator(self._members, self._waits,
                                                   1 + self._number % 32766)
        return self._comm

    def _sum(self, tensors, results, op):
        """In the thread: sums tensors as one buffer, in place."""
        whole = _one_buffer(tensors)
        _world().sum(self._communicator(), whole.data_ptr(), whole.numel())
        if op == ReduceOp.AVG:
            whole.div_(self._ranks)
        _copy(whole, results)

    def _sum_blocks(self, tensors, results, op):
        """In the thread: each rank gets its block of the sum. Of one result the tensors are the
        blocks of all ranks; of several, each tensor has a block of each rank."""
        if len(results) == 1:
            whole = _one_buffer(tensors)
        else:
            whole = torch.cat([t.detach().reshape(self._ranks, -1).float() for t in tensors], 1)
        block = torch.empty(whole.numel() // self._ranks)
        _world().sum_blocks(self._communicator(), whole.data_ptr(), block.data_ptr(),
                            block.numel())
        if op == ReduceOp.AVG:
            block.div_(self._ranks)
        _copy(block, results)

    def allreduce(self, tensors, opts=ReduceOp.SUM, *rest, **keywords):
        if isinstance(tensors, torch.Tensor):
            tensors = [tensors]
        opts = keywords.pop("op", opts)
        return self._take("all_reduce", self._sum, tensors, tensors, opts,
                          lambda opts: self._gloo.allreduce(tensors, opts, *rest, **keywords))

    def allreduce_coalesced(self, tensors, opts):
        return self._take("all_reduce_coalesced", self._sum, tensors, tensors, opts,
                          lambda opts: self._gloo.allreduce_coalesced(tensors, opts))

    def reduce(self, tensors, *options, **keywords):
        whole = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        _seen.count("reduce", sum(map(_bytes, whole)), "reduce to one rank")
        return self._gloo.reduce(tensors, *options, **keywords)

    def reduce_scatter(self, outputs, inputs, opts=ReduceOp.SUM, *rest, **keywords):
        if isinstance(outputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        opts = keywords.pop("op", opts)
        lengths = {tensor.numel() for tensor in (*inputs[0], *outputs)}
        return self._take("reduce_scatter", self._sum_blocks, inputs[0], outputs, opts,
                          lambda opts: self._gloo.reduce_scatter(outputs, inputs, opts, *rest,
                                                                 **keywords),
                          "of unequal blocks" if len(lengths) > 1 else _too_long(outputs))


def _bytes(tensor):
    return tensor.numel() * tensor.element_size()


def _one_buffer(tensors):
    """Contiguous floats: the tensor itself where it is that."""
    flat = [tensor.detach().reshape(-1).float() for tensor in tensors]
    return flat[0] if len(flat) == 1 else torch.cat(flat)


def _copy(whole, tensors):
    for tensor, part in zip(tensors, whole.split([tensor.numel() for tensor in tensors])):
        if tensor.data_ptr() != part.data_ptr():
            tensor.detach().copy_(part.view_as(tensor))


def _too_long(outputs):
    return "too long" if sum(tensor.numel() for tensor in outputs) > _MOST else None


def _of_one(name):
    """reduce_scatter of one tensor, by one of its names in PyTorch's versions."""

    def function(self, output, tensor, opts=None):
        opts = opts or dist.ReduceScatterOptions()
        return self._take("reduce_scatter_tensor", self._sum_blocks, [tensor], [output], opts,
                          lambda opts: getattr(self._gloo, name)(output, tensor, opts),
                          _too_long([output]))

    return function


def _of_several(name):
    def function(self, outputs, tensors, opts=None):
        opts = opts or dist.ReduceScatterOptions()
        return self._take("reduce_scatter_tensor_coalesced", self._sum_blocks, tensors, outputs,
                          opts, lambda opts: getattr(self._gloo, name)(outputs, tensors, opts),
                          _too_long(outputs))

    return function


def _of_gloo(name):
    """Not the inherited function: that looks for Python's with the lock of the interpreter, and
    keeps it while it waits for gloo's, whose threads take them the other way round."""
    def function(self, *arguments, **keywords):
        return getattr(self._gloo, name)(*arguments, **keywords)

    return function


_OWN = {"_reduce_scatter_base": _of_one, "reduce_scatter_single": _of_one,
        "reduce_scatter_tensor_coalesced": _of_several,
        "reduce_scatter_single_coalesced": _of_several}
for _name in dir(ProcessGroup):  # versions of PyTorch have other names
    if _name not in vars(Group) and re.match(_COLLECTIVE, _name):
        setattr(Group, _name, _OWN.get(_name, _of_gloo)(_name))
