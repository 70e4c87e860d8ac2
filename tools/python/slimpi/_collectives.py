# SPDX-License-Identifier: BSD-3-Clause
"""The sums that MPI makes for a process group, whatever its backend: those of floats from
SLIMPI_MIN_SIZE on.

Whether MPI sums a tensor depends on what the ranks of a group have alike: its type, its length, its
device and the operation. Each group has a communicator and a thread of its own, so its sums keep
their order, and no group waits for another.
"""
import os
import threading

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ReduceOp

from . import _join, _seen, _threads
from ._agreement import check_answers, describe, gather
from ._mpi import Error
from ._parameters import bytes_of
from ._sums import end_streams
from ._work import SumWork
from ._world import Worker, world as _world
from .torch import OF_MODELS

_FLOAT_BYTES = 4   # 16-bit floats are summed as float32, too
_TYPES = {"float": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
_MOST = 2**31 - 1  # the count of MPI_Reduce_scatter_block is an int
# Before 2.7, PyTorch's C++ does not keep the Python object of the Work that it holds, and
# DistributedDataParallel asks the Work for its future as soon as it has it.
_KEEPS_WORK = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 7)

lenient = False  # whether a group that cannot use MPI leaves its sums to its backend; else an error
tell = lambda collectives: None  # called before each sum that MPI gets


def _options_of(world):
    """What decides which sums are taken; alike on all ranks."""
    algorithm = world.mpi.option("algorithm")
    if algorithm in OF_MODELS:
        raise Error(f"{algorithm} averages models, and torch.distributed sums gradients: choose "
                    "another algorithm")
    return {name: world.mpi.option(name) for name in ("min_size", "types", "buffers")}


class Collectives:
    """Collective over the ranks of the group."""

    def __init__(self, rank, size, seconds, backend, store):
        """seconds: the timeout of a sum. backend: what makes the other sums. store: the group's."""
        self.rank, self.size, self.backend, self._seconds = rank, size, backend, seconds
        self._comm, self._worker, self._streams = None, None, {}
        self._lock = threading.Lock()
        self._left = "in a group of one rank" if size == 1 else None
        self.nodes, self.refusal = 1, None
        if size > 1:
            self._join(store)

    def _join(self, store):
        """Finds the group's ranks in MPI's world."""
        mine = {"error": "", "options": {}, "rank": -1, "size": 0, "number": 0,
                "timeout": max(1, int(self._seconds)), "host": os.uname().nodename,
                "place": _threads.place()}
        if not dist.is_initialized():  # the group is the default one, of all ranks
            _join.offered = store, self.rank, self.size
        try:
            world = _world()
            mine.update(options=_options_of(world), rank=world.rank, size=world.size,
                        number=world.numbers)
        except Error as error:
            mine["error"] = str(error)
        finally:
            _join.offered = None
        answers = gather(store, self.rank, self.size, mine)
        self.nodes = len({answer["host"] for answer in answers})
        self.places = [answer["place"] for answer in answers]
        try:
            self._members, timeout = check_answers(answers, mine)
        except Error as error:
            if not lenient:
                raise
            self._left, self.refusal = "of a refused group", str(error)
            return
        # No member has used the number before, so groups of the same ranks have other tags.
        self._number = max(answer["number"] for answer in answers)
        world.numbers = self._number + 1
        self._waits = {} if world.mpi.option("timeout") else {"timeout": str(timeout)}
        self._min_size = bytes_of(mine["options"]["min_size"])
        self._types = [_TYPES[name] for name in mine["options"]["types"].split(",")
                       if name in _TYPES]
        self._devices = {"any": ("cpu", "cuda"), "device": ("cuda",), "host": ("cpu",)}[
            mine["options"]["buffers"]]

    def is_one_node(self):
        return _threads.is_one_node(self.nodes)

    def free(self):
        """After all sums."""
        if self._worker is not None:
            self.submit("MPI_Comm_free", [], self._free)

    def _free(self):
        if self._comm is not None:
            _world().free(self._comm)
            self._comm = None

    def leave(self, reason):
        """Leaves all sums from now on to the backend. On all ranks."""
        self._left = self._left or reason

    def _reason(self, tensors, op):
        """Why the backend sums these; None where MPI does."""
        if self._left:
            return self._left
        places = {tensor.device for tensor in tensors}
        if len(places) > 1 or any(place.type not in self._devices for place in places):
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
        if tensors[0].is_cuda and torch.cuda.is_current_stream_capturing():
            return "part of a CUDA graph"
        return None

    def _take(self, name, function, tensors, results, op, reason=None):
        """Has the thread call the function, and returns the Work; None where the backend sums these
        tensors."""
        reason = reason or self._reason(tensors, op)
        _seen.count(name, _seen.bytes_of(tensors), reason, self.backend)
        if reason is not None:
            return None
        tell(self)
        return self.submit(name, results, function, tensors, results, op)

    def all_reduce(self, name, tensors, op):
        return self._take(name, self._sum, tensors, tensors, op)

    def reduce_scatter(self, name, inputs, outputs, op):
        """Of one output, the inputs are the blocks of all ranks, or one tensor with all blocks; of
        several, each has its input."""
        reason = None
        if sum(tensor.numel() for tensor in outputs) > _MOST:
            reason = "too long"
        if len(outputs) == 1 and len(inputs) > 1 and any(
                tensor.numel() != outputs[0].numel() for tensor in inputs):
            reason = "of unequal blocks"
        return self._take(name, self._sum_blocks, inputs, outputs, op, reason)

    def submit(self, name, results, function, *arguments):
        one = SumWork(name, results, self._seconds, self._streams)
        if not _KEEPS_WORK:
            self._last = one
        with self._lock:
            if self._worker is None:  # of a group of one rank, too: gloo's means
                self._worker = Worker() if self._left else _world().new_worker()
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
        end_streams(whole)
        _world().sum(self._communicator(), whole.data_ptr(), whole.numel())
        if op == ReduceOp.AVG:
            whole.div_(self.size)
        _copy(whole, results)

    def _sum_blocks(self, tensors, results, op):
        """In the thread: each rank gets its block of the sum."""
        if len(results) == 1:
            whole = _one_buffer(tensors)
        else:
            whole = torch.cat([t.detach().reshape(self.size, -1).float() for t in tensors], 1)
        block = whole.new_empty(whole.numel() // self.size)
        end_streams(whole)
        _world().sum_blocks(self._communicator(), whole.data_ptr(), block.data_ptr(),
                            block.numel())
        if op == ReduceOp.AVG:
            block.div_(self.size)
        _copy(block, results)


def _one_buffer(tensors):
    """Contiguous floats: the tensor itself where it is that."""
    flat = [tensor.detach().reshape(-1).float().contiguous() for tensor in tensors]
    return flat[0] if len(flat) == 1 else torch.cat(flat)


def _copy(whole, tensors):
    for tensor, part in zip(tensors, whole.split([tensor.numel() for tensor in tensors])):
        if tensor.data_ptr() != part.data_ptr():
            tensor.detach().copy_(part.view_as(tensor))
