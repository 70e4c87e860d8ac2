# SPDX-License-Identifier: BSD-3-Clause
"""Sums of floats of at least SLIMPI_MIN_SIZE that MPI makes for a process group of any backend.
Sums of gradients are compressed, and so are sums that slimpi.torch.compress() asked for. Gathers of
weights are compressed if the user says to how many bits.

Whether MPI sums a tensor depends only on properties that are the same on all ranks of a group:
type, length, device, operation, and the code that asks for the sum. A tensor may be a gradient on
some ranks and not on others, so MPI gets all sums that the program itself asks for, and the ranks
vote on each: it is compressed if all of them have a gradient. Each group has communicators and a
thread of its own, so its sums keep their order and no group waits for another.
"""
import fnmatch
import functools
import os
import threading
import weakref

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ReduceOp

from . import _gradients, _join, _kinds, _seen, _threads
from ._agreement import EXACT, check_answers, describe, gather, options_of, rows_for
from ._edges import Memory, Spread, alignment, mixes
from ._gathers import CALLS, Gathers
from ._mpi import Error, check_bits, text_of
from ._parameters import bytes_of
from ._sums import FLOAT_BYTES, end_streams, floats_of, one_buffer, share_out
from ._work import SumWork
from ._worker import Worker
from ._world import InStep, world as _world

_TYPES = torch.float32, torch.float16, torch.bfloat16
_TAGS = 16383      # for MPI_Comm_create_group; higher ones are of _model_comms
_MOST = 2**31 - 1  # the counts of MPI_Reduce_scatter_block and MPI_Allgather are ints
# Why calls with tensors of different types or lengths are left to the backend. Most backends then
# raise an error of their own.
_UNLIKE = "of tensors of unlike types or lengths"

lenient = False  # true: a group that cannot use MPI leaves sums to its backend; false: an error
before_sum = lambda collectives: None  # called before each sum that MPI gets


class Collectives:
    """Makes the sums of one process group. The constructor is collective over the group's ranks."""

    def __init__(self, rank, size, timeout, backend, store, name):
        """timeout: a function that returns the group's present timeout in seconds. backend: the
        name of the backend that makes the sums that MPI does not take. store: the group's store.
        name: a function that returns the name for the group's communicators."""
        self._name, self._all, self._worker, self._streams = name, False, None, {}
        self.rank, self.size, self.backend, self._timeout = rank, size, backend, timeout
        self._comms = {}  # communicators by their options
        self._lock, self.memory = threading.Lock(), Memory()
        self.weights = None  # Gathers; None: this group leaves all of them to the backend
        self._left = "in a group of one rank" if size == 1 else None
        self.in_step = InStep()
        self.hooked = None  # the models of leave_to_hook(), as long as sums are left to their hooks
        self.nodes, self.refusal, self.summed = 1, None, 0
        self.number = None  # the group's number in goodbyes, as long as this rank is in the group
        self._submitted, self._fewest = 0, None  # sums; (sums, rank) of the rank that left first
        self.close = lambda: None  # closes the connections of the group's backend
        if size > 1:
            self._join(store)

    def _join(self, store):
        """Finds the group's ranks in MPI's world and checks that they have the same options."""
        mine = {"error": "", "options": {}, "rank": -1, "size": 0, "number": 0,
                "host": os.uname().nodename, "place": _threads.place()}
        if not dist.is_initialized():  # a new default group, which has all ranks
            _join.offered = store, self.rank, self.size
        try:
            world = _world()
            mine.update(options=options_of(world), rank=world.rank, size=world.size,
                        number=next(world.numbers))
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
        # No other group of the job has this number, even if several threads make groups at once, so
        # groups that share ranks get different tags.
        self.number = self._number = answers[0]["number"] * world.size + answers[0]["rank"]
        self._limited = not world.mpi.option("timeout")
        self._min_size = bytes_of(mine["options"]["min_size"])
        self._rules = mine["options"]["rules"]
        self._all = mine["options"]["sums"] == "all"
        self.algorithm = world.mpi.option("algorithm")
        world.groups[id(self)] = self
        self._bucket = bytes_of(world.mpi.option("bucket"))
        self.align = alignment(world.mpi, self.algorithm, self._bucket)
        self.weights = Gathers(self._name, self._rules, self.algorithm, self._bucket,
                               mine["options"]["weights"])
        self._devices = {"any": ("cpu", "cuda"), "device": ("cuda",), "host": ("cpu",)}[
            mine["options"]["buffers"]]
        world.begin_goodbyes(self.size)

    def is_one_node(self):
        return _threads.is_one_node(self.nodes)

    def say_goodbye(self):
        """Tells the other ranks that this rank makes no more sums of the group."""
        if self.number is not None:
            _world().say_goodbye(self.members, self.number, self._submitted)
        self.number = None
        self.close()

    def take_goodbye(self, rank, sums):
        """Notes that a rank of the world has left the group after it made `sums` sums."""
        self._fewest = min(self._fewest or (sums, rank), (sums, rank))

    def _why_never(self, index):
        """Returns why sum number `index` of the group can never end, for example because a rank has
        left; None if it can."""
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
        """Ends the group's thread and frees its communicators, after all sums."""
        self.say_goodbye()
        if self._worker is not None:
            self._worker.submit(self._free)
            self._worker.end()
            self._worker = None

    def _free(self):
        # All ranks free the communicators in the same order. Two keys may lead to the same
        # communicator.
        for comm in dict.fromkeys(self._comms.values()):
            try:
                _world().free(comm)
            except Error:  # of a sum that failed
                pass
        self._comms, self.weights = {}, None

    def leave(self, reason):
        """Leaves all later sums to the backend for this reason. Call it on all ranks."""
        self._left = self._left or reason

    def leave_to_hook(self, model):
        """Leaves all sums to the backend because the program has given the model a hook of its own.
        Call it on all ranks. The model is deleted at a different time on each rank, so the sums
        stay with the backend until the ranks next make a model on the group and find that no model
        with a hook of the program is left."""
        self.hooked = weakref.WeakSet() if self.hooked is None else self.hooked
        self.hooked.add(model)

    def _reason(self, name, tensors, results, op):
        """Returns why the backend makes a call of take(); None if MPI makes it."""
        if self._left:
            return self._left
        if self.hooked is not None:
            has = "has" if self.hooked else "had"
            return f"of a group whose model {has} a hook of the program's"
        # DTensor and the result of a functional sum are subclasses. The latter may not be complete
        # yet.
        if any(type(tensor) not in (torch.Tensor, torch.nn.Parameter)
               for tensor in (*tensors, *results)):
            return "of a subclass of Tensor"
        if unlike := self._unlike(name, tensors, results):
            return unlike
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
        if max(floats_of(tensors), floats_of(results)) * FLOAT_BYTES < self._min_size:
            return "shorter than SLIMPI_MIN_SIZE"
        if tensors[0].is_cuda and torch.cuda.is_current_stream_capturing():
            return "part of a CUDA graph"
        return None

    def rule(self, count):
        """Returns the algorithm of the row of SLIMPI_RULES that decides a sum of `count` floats;
        None if the row is for all names or there is no row."""
        for pattern, algorithm, _ in rows_for(self._rules, count):
            if fnmatch.fnmatchcase(self._name(), pattern):
                return algorithm if pattern != "*" else None
        return None

    def _unlike(self, name, tensors, results):
        """Returns why the backend makes a call with tensors of these types and lengths; None if MPI
        makes it."""
        gathers = "gather" in name
        own, others = (tensors, results) if gathers else (results, tensors)
        if name == "all_reduce" and len(own) > 1:
            return "of several tensors"  # each tensor becomes the sum of all
        blocks = 1
        if gathers or "scatter" in name:
            if floats_of(own) > _MOST:
                return "too long"
            if name == "reduce_scatter" or gathers and len(others) > 1:
                own = own * self.size
            else:
                blocks = self.size
        elif len({one.dtype for one in own}) > 1:
            return _UNLIKE
        alike = len(own) == len(others) and all(
            one.dtype == other.dtype and blocks * one.numel() == other.numel()
            for one, other in zip(own, others))
        return None if alike else _UNLIKE

    def take(self, name, tensors, results, op=ReduceOp.SUM, by_hand=True):
        """Hands a sum, or a gather of weights, to the group's thread and returns its Work; returns
        None if the backend must make it.

        name: the function of torch.distributed. An all-reduce has the same tensors as results.
            "reduce_scatter" has one result, and a tensor for each rank; other reduce-scatters have
            pairs of a tensor and a result. "all_gather" has one tensor, and one result or a result
            for each rank.
        by_hand: whether a function of torch.distributed asks for the sum; any code may have called
            the function."""
        kind, scatters, gathers = _kinds.kind(), "scatter" in name, "gather" in name
        longest = max(floats_of(tensors), floats_of(results))
        codec = self.weights and self.weights.choose(longest) if gathers else self
        if codec is None:
            return None
        row = longest // self.size if scatters or gathers else longest
        pieces, padding = _kinds.row_of(self, row)
        reason = self._reason(name, tensors, results, op) or (
            codec.reason(tensors[0], pieces) if gathers else None)
        rule = None if reason or gathers and codec.by_row else self.rule(longest)
        if rule == "off":
            reason = "off by SLIMPI_RULES"
        known = gathers or self._all or rule or kind == _kinds.GRADIENTS
        if not (reason or known or by_hand):
            reason = _seen.BY_C
        length = max(_seen.bytes_of(tensors), _seen.bytes_of(results))
        if reason:
            _seen.count(name, length, f"{reason}, of weights" if gathers else reason, self.backend)
            return None
        before_sum(self)
        several = scatters or gathers or kind == _kinds.GRADIENTS  # parameters in one tensor
        mixed = codec.algorithm if mixes(_world().mpi, codec.algorithm) or (
            codec.align and several and not pieces) else None
        spread = Spread(codec.align and pieces or (row,), codec.align or 1, padding)
        if gathers:
            self._count("gathers of weights", length, mixed)
            return self.submit(name, results, codec.gather, self, tensors[0], results,
                               spread, kind == _kinds.CHANGES)
        if known:
            self._count(name, length, mixed)
            choose = self.communicator
        else:
            is_gradient = _gradients.are_gradients(tensors)
            choose = functools.partial(self._choose, name, length, mixed, is_gradient,
                                       None if is_gradient else _seen.place_of_caller())
        return self.submit(name, results, self._sum, choose, scatters, tensors, results, op, spread)

    def _count(self, name, length, mixed):
        """Counts a compressed sum or gather for the line at the end. mixed: the algorithm, if it
        makes the values of several parameters share scales or bits."""
        _seen.count(name, length)
        if mixed:
            _world().count(self, mixed)
        else:
            self.summed += 1

    def compress(self, bits=None):
        """Makes all later sums compressed or, with `bits`, gathers of weights in that many bits.
        Collective over the group."""
        if self._left or self.hooked is not None:
            return
        name = "slimpi.torch.compress(group)"
        if bits is None:
            self.submit(name, [], self._votes, 2).wait()
            self._all = True
            return
        check_bits(_world().mpi, bits, self.algorithm, "weights")
        self.submit(name, [], self._set_weights, bits).wait()

    def _set_weights(self, bits):
        self._votes(2, bits)
        self.weights = Gathers(self._name, [], self.algorithm, self._bucket, bits)

    def submit(self, name, results, function, *arguments):
        seconds = self._timeout()
        one = SumWork(name, results, seconds, self._streams,
                      functools.partial(self._why_never, self._submitted))
        self._submitted += 1
        one.check()
        with self._lock:
            if self._worker is None:  # also for a group of one rank: gloo's means are made here
                self._worker = Worker() if self._left else _world().new_worker()
        self._worker.submit(lambda: self._begin(one, seconds, results, function, *arguments))
        return one

    def _begin(self, one, seconds, *arguments):
        """Runs a Work, or notes that its timeout has ended it before. Called in the thread."""
        one.run(self._run, seconds, *arguments)
        if not one.began:
            self.in_step.miss(one.error)

    def _run(self, seconds, results, function, *arguments):
        """Calls a function that makes sums, with a timeout of `seconds`. Called in the group's
        thread."""
        self._seconds = seconds
        function(*arguments)
        for result in results[:1]:  # all are on one device
            end_streams(result)

    def describe(self):
        return describe(_world().mpi, _world().mpi.option)

    def communicator(self, options=(), suffix=""):
        """Returns the communicator with these options, by default that of compressed sums, for a
        sum under the present timeout; the first call makes it, with a suffix of the group's name.
        Called in the thread."""
        key = tuple(sorted(dict(options).items()))
        if key not in self._comms:
            self._comms[key] = _world().new_communicator(
                self.members, dict(key), self._name() + suffix, 1 + self._number % _TAGS)
        if self._limited:
            _world().limit(self._comms[key], self._seconds)
        return self._comms[key]

    def exact_communicator(self):
        """Returns the communicator of sums without compression. Called in the thread."""
        calls = {"calls": CALLS} if self.weights and self.weights.any() else {}
        return self.communicator({} if self.algorithm == "off" else {**EXACT, **calls})

    def sum_exactly(self, values):
        """Returns the sums of a few values over the ranks. Called in the group's thread."""
        values = torch.tensor(values, dtype=torch.float32, device="cpu")
        _world().sum(self.exact_communicator(), values.data_ptr(), values.numel())
        return values.tolist()

    def _votes(self, mine, bits=0):
        """Sums the ranks' votes on whether a tensor is a gradient, and returns how many voted 0 and
        how many voted 1. mine: 0 if it is none, 1 if it is one, 2 after compress(). bits: in how
        many bits weights are gathered. Called in the group's thread."""
        bits = float(bits)
        with self.in_step:
            others, gradients, groups, total, squares = self.sum_exactly(
                [mine == vote for vote in range(3)] + [bits, bits ** 2])
        if groups not in (0, self.size):
            raise Error(f"slimpi.torch.compress(group) was called on {groups:g} of {self.size} "
                        "ranks of the group, and the others make a sum: call it on all of them")
        if total ** 2 != squares * self.size:
            raise Error("slimpi.torch.compress(group, weights=) got different numbers of bits on "
                        "the ranks of the group: give all of them the same")
        return others, gradients

    def _choose(self, name, length, mixed, is_gradient, place):
        """Lets the ranks vote and returns the communicator for a sum that may be of gradients.
        Called in the group's thread."""
        others, gradients = self._votes(int(is_gradient))
        if not others:
            self._count(name, length, mixed)
            return self.communicator()
        _seen.count_exact(length, place, gradients != 0)
        return self.exact_communicator()

    def _sum(self, choose, scatters, tensors, results, op, spread):
        """Sums the tensors as one buffer, in place, or gives each rank its block of the sum.
        choose: returns the communicator. Called in the group's thread."""
        with self.in_step:
            # If each tensor has the blocks of all ranks, the buffer has the first rank's block of
            # every tensor, then the second's, and so on.
            whole = one_buffer(tensors, self.size if scatters and len(results) > 1 else 1)
            whole = spread.spread(whole, self.size if scatters else 1, self.memory)
            end_streams(whole)
            if scatters:
                block = whole.new_empty(whole.numel() // self.size)
                _world().sum_blocks(choose(), whole.data_ptr(), block.data_ptr(), block.numel())
            else:
                block = whole
                _world().sum(choose(), whole.data_ptr(), whole.numel())
        if op == ReduceOp.AVG:
            block.div_(self.size)
        share_out(spread.gather(block), results)
