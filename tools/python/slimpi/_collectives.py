# SPDX-License-Identifier: BSD-3-Clause
"""Float sums of SLIMPI_MIN_SIZE and more that MPI makes for a process group of any backend. Sums of
gradients are compressed, and sums that slimpi.torch.compress() asked for. So are gathers of weights
if the user says in how many bits.

Whether MPI sums a tensor depends on properties that are the same on all ranks of a group: its type,
its length, its device, the operation, and the code that asks for the sum. MPI gets all sums that
the program itself asks for, because a tensor may be a gradient on some ranks only. For such a sum
the ranks vote: it is compressed if the tensor is a gradient on all ranks. Each group has
communicators and a thread of its own, so its sums keep their order, and no group waits for another.
"""
import fnmatch
import functools
import os
import threading

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ReduceOp

from . import _gradients, _join, _seen, _threads
from ._agreement import EXACT, check_answers, describe, gather, options_of
from ._edges import Memory, Spread, alignment, mixes
from ._gathers import CALLS, Weights
from ._mpi import Error, check_bits, text_of
from ._parameters import bytes_of, pieces_of_row
from ._sums import end_streams
from ._work import SumWork
from ._world import Worker, world as _world

_FLOAT_BYTES = 4   # 16-bit floats are summed as float32, too
_TYPES = torch.float32, torch.float16, torch.bfloat16
_TAGS = 16383      # of MPI_Comm_create_group; those behind are of _model_comms
_MOST = 2**31 - 1  # the count of MPI_Reduce_scatter_block is an int
# The reason for which calls with unlike tensors are left to the backend. Most backends raise an
# error of their own for these calls.
_UNLIKE = "of tensors of unlike types or lengths"

lenient = False  # true: a group that cannot use MPI leaves sums to its backend; false: an error
before_sum = lambda collectives: None  # called before each sum that MPI gets


class Collectives:
    """The sums of one process group. Making one is collective over the ranks of the group."""

    def __init__(self, rank, size, timeout, backend, store, name):
        """timeout: a function that returns the present timeout of the group in seconds. backend:
        the name of the backend that makes the sums that MPI does not make. store: the group's
        store. name: a function that returns the name for the group's communicators."""
        self._name, self._all, self._exact_comm = name, False, None
        self.rank, self.size, self.backend, self._timeout = rank, size, backend, timeout
        self._limits = {}  # by communicator: the timeout that slimpi knows
        self._comm, self._worker, self._streams = None, None, {}
        self._lock, self.memory = threading.Lock(), Memory()
        self.weights = None  # Weights; None: the backend gathers them
        self._left = "in a group of one rank" if size == 1 else None
        self.nodes, self.refusal, self.summed = 1, None, 0
        self.number = None  # the group's number in goodbyes, as long as this rank is in the group
        self._submitted, self._fewest = 0, None  # sums; (sums, rank) of the rank that left first
        self.close = lambda: None  # closes the connections of the group's backend
        if size > 1:
            self._join(store)

    def _join(self, store):
        """Finds the group's ranks in MPI's world and compares options."""
        mine = {"error": "", "options": {}, "rank": -1, "size": 0, "number": 0,
                "host": os.uname().nodename, "place": _threads.place()}
        if not dist.is_initialized():  # a new default group, which has all ranks
            _join.offered = store, self.rank, self.size
        try:
            world = _world()
            mine.update(options=options_of(world), rank=world.rank, size=world.size,
                        number=world.numbers)
        except Exception as error:  # of any kind, because the others wait for this rank's answer
            mine["error"] = text_of(error)
        finally:
            _join.offered = None
        answers = gather(store, self.rank, self.size, mine)
        self.nodes = len({answer["host"] for answer in answers})
        self.places = [answer["place"] for answer in answers]
        try:
            self.members = check_answers(answers, mine)
        except Error as error:
            if not lenient:
                raise
            self._left, self.refusal = "of a refused group", str(error)
            return
        # No member has used this number, so two groups of the same ranks have different tags.
        self.number = self._number = max(answer["number"] for answer in answers)
        world.numbers = self._number + 1
        self._limited = not world.mpi.option("timeout")
        self._min_size = bytes_of(mine["options"]["min_size"])
        self._rules = mine["options"]["rules"]
        self._all = mine["options"]["sums"] == "all"
        self._algorithm = world.mpi.option("algorithm")
        world.groups.add(self)
        self._bucket = bytes_of(world.mpi.option("bucket"))
        self._align = alignment(self._algorithm, self._bucket)
        if mine["options"]["weights"]:
            self.weights = Weights(mine["options"]["weights"], self._algorithm, self._bucket)
        self._devices = {"any": ("cpu", "cuda"), "device": ("cuda",), "host": ("cpu",)}[
            mine["options"]["buffers"]]
        world.begin_goodbyes(self.size)

    def is_one_node(self):
        return _threads.is_one_node(self.nodes)

    def say_goodbye(self):
        """Tells the other ranks that this rank calls no more sums of the group."""
        if self.number is not None:
            _world().say_goodbye(self.members, self.number, self._submitted)
        self.number = None
        self.close()

    def take_goodbye(self, rank, sums):
        """Notes that a rank of the world has left the group after so many sums."""
        self._fewest = min(self._fewest or (sums, rank), (sums, rank))

    def _why_never(self, index):
        """Returns why the group's sum number `index` can never end; None if it can."""
        lost = _join.lost_rank()
        if lost == -1 or lost in getattr(self, "members", ()):
            return ("the job was aborted, or the process of rank 0 has ended" if lost == -1 else
                    f"rank {lost} has ended without MPI_Finalize")
        if self._fewest is None or index < self._fewest[0]:
            return None
        return (f"rank {self._fewest[1]} takes no part, because it has destroyed the process group "
                f"or ended the program after {self._fewest[0]} sums of this group: give all ranks "
                "equally many batches (drop_last=True, or join() of the model)")

    def free(self):
        """Frees the communicators and ends the thread, after all sums."""
        self.say_goodbye()
        if self._worker is not None:
            self._worker.submit(self._free)
            self._worker.end()
            self._worker = None

    def _free(self):
        # All ranks free them in the same order. Two may be one communicator.
        of_weights = self.weights and self.weights.comm
        for comm in filter(None, dict.fromkeys((self._comm, self._exact_comm, of_weights))):
            try:
                _world().free(comm)
            except Error:  # of a sum that failed
                pass
        self._comm = self._exact_comm = self.weights = None

    def leave(self, reason):
        """Leaves all sums from now on to the backend. Call it on all ranks."""
        self._left = self._left or reason

    def reason(self, tensors, results, op):
        """Returns why the backend sums or gathers these tensors; None where MPI does."""
        if self._left:
            return self._left
        # Subclasses are DTensor and the result of a functional sum, which may not be complete yet.
        if any(type(tensor) not in (torch.Tensor, torch.nn.Parameter)
               for tensor in (*tensors, *results)):
            return "of a subclass of Tensor"
        places = {tensor.device for tensor in (*tensors, *results)}
        if len(places) > 1 or any(place.type not in self._devices for place in places):
            return "on a device"
        if any(tensor.layout != torch.strided for tensor in (*tensors, *results)):
            return "sparse"
        others = [tensor.dtype for tensor in tensors if tensor.dtype not in _TYPES]
        if others:
            return str(others[0]).replace("torch.", "")
        if not (op == ReduceOp.SUM or op == ReduceOp.AVG):
            return "not SUM or AVG"
        if max(_floats(tensors), _floats(results)) * _FLOAT_BYTES < self._min_size:
            return "shorter than SLIMPI_MIN_SIZE"
        if tensors[0].is_cuda and torch.cuda.is_current_stream_capturing():
            return "part of a CUDA graph"
        return None

    def rule(self, count):
        """Returns the algorithm of the row of SLIMPI_RULES that decides a sum of `count` floats;
        None if the row is for all names or there is no row."""
        length = count * _FLOAT_BYTES
        for least, most, pattern, algorithm in self._rules:
            if least <= length and (most is None or length <= most) and fnmatch.fnmatchcase(
                    self._name(), pattern):
                return algorithm if pattern != "*" else None
        return None

    def _take(self, name, function, tensors, results, op, by_hand, reason=None):
        """Submits the sum to the thread, which calls the function, and returns its Work; returns
        None if the backend sums these tensors."""
        reason = reason or self.reason(tensors, results, op)
        rule = None if reason else self.rule(_floats(tensors))
        if rule == "off":
            reason = "off by SLIMPI_RULES"
        known = self._all or rule or _gradients.is_reducing()
        if not (reason or known or by_hand):
            reason = _seen.BY_C
        length = _seen.bytes_of(tensors)
        if reason is not None:
            _seen.count(name, length, reason, self.backend)
            return None
        before_sum(self)
        row = _floats(tensors)
        if function == self._sum_blocks:
            row //= self.size
        pieces = pieces_of_row(self, row) if self._align else None
        mixed = self._algorithm if mixes(self._algorithm) or (
            self._align and function == self._sum_blocks and not pieces) else None
        if known:
            self.count(name, length, mixed)
            choose = self._communicator
        else:
            is_gradient = _gradients.are_gradients(tensors)
            choose = functools.partial(self._choose, name, length, mixed, is_gradient,
                                       None if is_gradient else _seen.place_of_caller())
        return self.submit(name, results, function, choose, tensors, results, op,
                           Spread(pieces or (row,), self._align or 1))

    def count(self, name, length, mixed):
        """Counts a compressed sum or gather. mixed: the algorithm if values of several parameters
        share scales or bits."""
        _seen.count(name, length)
        if mixed:
            _world().count(self, mixed)
        else:
            self.summed += 1

    def all_reduce(self, name, tensors, op, by_hand):
        """Returns the Work of a sum in place; None: the backend must make the sum. by_hand: whether
        a function of torch.distributed asks for the sum; any code may have called the function."""
        reason = None
        if len({tensor.dtype for tensor in tensors}) > 1:
            reason = _UNLIKE
        if name == "all_reduce" and len(tensors) > 1:
            reason = "of several tensors"  # each tensor becomes the sum of all
        return self._take(name, self._sum, tensors, tensors, op, by_hand, reason)

    def reduce_scatter(self, name, inputs, outputs, op, by_hand):
        """Returns the Work of a reduce-scatter; None: the backend must do it. With the name
        "reduce_scatter" there is one output, and the inputs are the blocks of all ranks. With other
        names each output has one input, a tensor with all blocks."""
        reason = None
        if sum(tensor.numel() for tensor in outputs) > _MOST:
            reason = "too long"
        of_blocks = name == "reduce_scatter"
        shares = outputs * self.size if of_blocks else outputs
        blocks = 1 if of_blocks else self.size
        if len(inputs) != len(shares) or any(
                one.dtype != share.dtype or one.numel() != blocks * share.numel()
                for one, share in zip(inputs, shares)):
            reason = _UNLIKE
        return self._take(name, self._sum_blocks, inputs, outputs, op, by_hand, reason)

    def announce(self):
        """Calls before_sum, before MPI gets a sum or a gather."""
        before_sum(self)

    def all_gather(self, name, tensor, results, changes):
        """Returns the Work of a gather of weights; None: the backend must do it. results: one
        tensor, or one for each rank. changes: whether changes of the results are sent."""
        return self.weights and self.weights.submit(self, name, tensor, list(results), changes)

    def compress(self, bits=None):
        """Makes all sums from now on compressed, or gathers of weights in so many bits. Collective
        over the group."""
        if self._left:
            return
        name = "slimpi.torch.compress(group)"
        if bits is None:
            self.submit(name, [], self._votes, 2).wait()
            self._all = True
            return
        check_bits(_world().mpi, bits, self._algorithm, "weights")
        self.submit(name, [], self._set_weights, bits).wait()

    def _set_weights(self, bits):
        self._votes(2, bits)
        before, self.weights = self.weights, Weights(bits, self._algorithm, self._bucket)
        if before is not None and before.comm is not None:
            _world().free(before.comm)

    def submit(self, name, results, function, *arguments):
        seconds = self._timeout()
        one = SumWork(name, results, seconds, self._streams,
                      functools.partial(self._why_never, self._submitted))
        self._submitted += 1
        one.check()
        with self._lock:
            if self._worker is None:  # also for a group of one rank: gloo's means are made here
                self._worker = Worker() if self._left else _world().new_worker()
        self._worker.submit(lambda: one.run(self._run, seconds, function, *arguments))
        return one

    def _run(self, seconds, function, *arguments):
        """Calls a function that makes sums under the timeout `seconds`. Called in the thread."""
        self._seconds = seconds
        function(*arguments)

    def limit(self, comm):
        """Gives slimpi the timeout of the sum for its waits. Called in the thread."""
        if self._limited and self._limits.get(comm) != self._seconds:
            self._limits[comm] = self._seconds
            _world().mpi.set_timeout(comm, self._seconds)
        return comm

    def describe(self):
        return describe(_world().mpi, _world().mpi.option)

    def new_communicator(self, options):
        return _world().new_communicator(self.members, options, self._name(),
                                         1 + self._number % _TAGS)

    def _communicator(self):
        """Returns the communicator of compressed sums; the first call makes it. Called in the
        thread."""
        if self._comm is None:
            self._comm = self.new_communicator({})
        return self.limit(self._comm)

    def exact_communicator(self):
        """Returns the communicator of sums without compression. Called in the thread."""
        if self._exact_comm is None:
            calls = {"calls": CALLS} if self.weights else {}
            self._exact_comm = (self._communicator() if _world().mpi.option("algorithm") == "off"
                                else self.new_communicator({**EXACT, **calls}))
        return self.limit(self._exact_comm)

    def _votes(self, mine, bits=0):
        """Sums the votes of the ranks: 0: not a gradient, 1: a gradient, 2: compress(). bits: of
        weights. Returns how many ranks voted 0 and how many voted 1. Called in the thread."""
        votes = torch.zeros(5, dtype=torch.float32)  # whatever type the program made the default
        votes[mine] = 1
        votes[3], votes[4] = float(bits), float(bits) ** 2
        _world().sum(self.exact_communicator(), votes.data_ptr(), len(votes))
        others, gradients, groups = map(int, votes.tolist()[:3])
        if groups not in (0, self.size):
            raise Error(f"slimpi.torch.compress(group) was called on {groups} of {self.size} ranks "
                        "of the group, and the others make a sum: call it on all of them")
        if votes[3] ** 2 != votes[4] * self.size:
            raise Error("slimpi.torch.compress(group, weights=) got different numbers of bits on "
                        "the ranks of the group: give all of them the same")
        return others, gradients

    def _choose(self, name, length, mixed, is_gradient, place):
        """Returns the communicator for a sum that may be of gradients, after a vote. Called in the
        thread."""
        others, gradients = self._votes(int(is_gradient))
        if not others:
            self.count(name, length, mixed)
            return self._communicator()
        _seen.count_exact(length, place, gradients != 0)
        return self.exact_communicator()

    def _sum(self, choose, tensors, results, op, spread):
        """Sums the tensors as one buffer, in place. Called in the thread."""
        whole = spread.spread(_one_buffer(tensors), 1, self.memory)
        end_streams(whole)
        _world().sum(choose(), whole.data_ptr(), whole.numel())
        if op == ReduceOp.AVG:
            whole.div_(self.size)
        _copy(spread.gather(whole), results)

    def _sum_blocks(self, choose, tensors, results, op, spread):
        """Gives each rank its block of the sum. Called in the thread."""
        if len(results) == 1:
            whole = _one_buffer(tensors)
        else:
            whole = torch.cat([t.detach().reshape(self.size, -1).float() for t in tensors], 1)
        whole = spread.spread(whole, self.size, self.memory)
        block = whole.new_empty(whole.numel() // self.size)
        end_streams(whole)
        _world().sum_blocks(choose(), whole.data_ptr(), block.data_ptr(), block.numel())
        if op == ReduceOp.AVG:
            block.div_(self.size)
        _copy(spread.gather(block), results)


def _floats(tensors):
    return sum(tensor.numel() for tensor in tensors)


def _one_buffer(tensors):
    """Returns the tensors as one tensor of contiguous floats, which may share a single tensor's
    memory."""
    flat = [tensor.detach().reshape(-1).float().contiguous() for tensor in tensors]
    return flat[0] if len(flat) == 1 else torch.cat(flat)


def _copy(whole, tensors):
    for tensor, part in zip(tensors, whole.split([tensor.numel() for tensor in tensors])):
        if tensor.data_ptr() != part.data_ptr():
            tensor.detach().copy_(part.view_as(tensor))
