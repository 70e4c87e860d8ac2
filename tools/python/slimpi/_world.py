# SPDX-License-Identifier: BSD-3-Clause
"""This process's part in the MPI job: the calls of MPI, and the end of the job."""
import atexit
import contextlib
import ctypes
import functools
import itertools
import math
import os
import signal
import sys
import threading
import time
import weakref

from . import _end, _join, _launcher
from ._goodbye import Goodbyes
from ._mpi import STATUS_BYTES, Error, Mpi, WrongLauncher
from ._worker import Worker

_NAME_BYTES = 63  # of a communicator's name; less than any MPI's MPI_MAX_OBJECT_NAME
_TIME_TO_FORWARD = 0.2  # seconds before an abort; launchers drop output written just before it
_SUMS_BEFORE_WARNING = 3
_SECONDS_TO_FAIL = 5  # time at the program's end for a sum that was given up to fail in MPI, too

_world = None
_lock = threading.Lock()


def alive(objects):
    """Returns the objects of a WeakValueDictionary while other threads may add some to it."""
    found = [reference() for reference in objects.valuerefs()]
    return [one for one in found if one is not None]


class InStep:
    """Whether this rank has made all sums that the other ranks have made on some communicators.
    Once it has missed one, it must make no others, because MPI would add its values to those of an
    earlier sum of the other ranks. These get an error at their timeout. A sum is made within the
    context of its InStep; an error after that, such as one of the result, misses no sum."""

    def __init__(self):
        self._missed = None

    def __enter__(self):
        self.check()

    def __exit__(self, kind, error, trace):
        self.note(error)

    def check(self):
        """Fails if this rank has missed a sum. Called before each sum."""
        if self._missed is not None:
            raise Error(f"this rank has missed an earlier sum ({self._missed!r}), so its sums no "
                        "longer belong to those of the other ranks")

    def miss(self, error):
        """Notes that an error has kept this rank from a sum."""
        self._missed = self._missed or error

    def note(self, error):
        """Notes the outcome of a sum that this rank began. The other ranks get an Error, too, but
        do not know of other exceptions, such as no memory."""
        if error is not None and not isinstance(error, Error):
            self.miss(error)


class World:
    """This process in MPI_COMM_WORLD."""

    def __init__(self):
        self.process = os.getpid()
        self.worker = Worker(ends=False)
        self.default = None      # the communicator of slimpi.allreduce
        self.models = 0          # how many models have had the hook of slimpi.torch
        self._limits = {}        # by communicator: the timeout that slimpi was given
        self._summed = set()     # communicators on which a sum of start_sum() has succeeded
        self.numbers = itertools.count()  # of the groups that this rank makes: see Collectives
        self.groups = weakref.WeakValueDictionary()  # Collectives and States, by id()
        self._goodbyes = None    # where ranks say that they leave a group; None without threads
        self.warned = False      # whether count() has warned of groups that cross
        self.stuck = math.inf    # since when MPI may be in a sum that was given up
        self._workers = weakref.WeakValueDictionary()  # all other Workers, by id()
        self.worker.do(self._begin)
        _end.watch_end()
        if self.initialized:
            self._watch_leave()

    def _begin(self):
        self.mpi = mpi = _join.join(Mpi)
        self.comm = mpi.constant("MPI_COMM_WORLD")
        if mpi.integer("MPI_Finalized"):
            raise Error("MPI was finalized before slimpi was used")
        level, multiple = ctypes.c_int(), mpi.constant("MPI_THREAD_MULTIPLE")
        self.initialized = not mpi.integer("MPI_Initialized")
        if self.initialized:
            mpi.call("MPI_Init_thread", None, None, multiple, ctypes.byref(level))
            self._threads = level.value >= multiple
            _join.after_init(mpi, self.comm)
        elif mpi.integer("MPI_Query_thread") < multiple:
            raise Error("the program initialized MPI without MPI_THREAD_MULTIPLE, which slimpi's "
                        "thread needs: ask MPI_Init_thread for it, or use slimpi before MPI")
        else:
            self._threads = True
        self.rank = mpi.integer("MPI_Comm_rank", self.comm)
        self.size = mpi.integer("MPI_Comm_size", self.comm)
        launched = _launcher.size()
        if launched is not None and launched > 1 and self.size == 1:
            raise WrongLauncher(
                f"the launcher started {launched} ranks, but {mpi.description} sees one: use the "
                "mpiexec of this MPI, or put the other MPI's libmpi.so first in LD_LIBRARY_PATH")

    def communicator(self):
        """Returns the communicator of slimpi.allreduce; the first call makes it. Collective over
        all ranks."""
        if self.default is None:
            self.default = self.worker.do(self.new_communicator, range(self.size), {},
                                          "slimpi (Python)")
        return self.default

    def count(self, group, algorithm):
        """Counts a compressed sum that makes values of several parameters share scales or bits.
        group: the object that makes the sum; it has `members` and `summed`. At the group's third
        sum, warns, once in a process, if the group crosses another group that has made no such
        sums, because that is tensor parallelism. In HSDP the other group has made sums by then."""
        group.summed += 1
        if group.summed != _SUMS_BEFORE_WARNING or self.warned or self.rank != 0:
            return
        mine = set(group.members)
        for other in alive(self.groups):
            common = mine.intersection(other.members)
            if not other.summed and common not in (set(), mine, set(other.members)):
                self.warned = True
                print(f"slimpi warning: groups of ranks {sorted(mine)} and {sorted(other.members)} "
                      f"cross, and in compressed sums of the first by {algorithm} a parameter "
                      "depends on those beside it: copies of a parameter on ranks of the second, "
                      "if there are any, drift apart. --algorithm bytegrad keeps them equal with "
                      "DistributedDataParallel and fully_shard, and a row of SLIMPI_RULES that "
                      "says off for the first with any program (slimpi-torch(7))",
                      file=sys.stderr, flush=True)
                return

    def new_worker(self):
        """Returns a Worker for the sums of one communicator. If several threads may call MPI, it is
        a new one. Otherwise all communicators share self.worker, and all ranks must make the sums
        of all communicators in the same order."""
        if not self._threads:
            return self.worker
        worker = Worker()
        self._workers[id(worker)] = worker
        return worker

    def new_communicator(self, ranks, options, name, tag=0):
        """Makes a communicator. Called in a worker's thread. Calls that may happen at the same
        time, in different threads and with the same ranks, must have different tags."""
        mpi = self.mpi
        world = ctypes.c_uint64(mpi.handle("MPI_Comm_group", self.comm))
        group = ctypes.c_uint64(mpi.handle("MPI_Group_incl", world.value, len(ranks),
                                           (ctypes.c_int * len(ranks))(*ranks)))
        comm = mpi.handle("MPI_Comm_create_group", self.comm, group.value, tag)
        mpi.call("MPI_Group_free", ctypes.byref(group))
        mpi.call("MPI_Group_free", ctypes.byref(world))
        mpi.call("MPI_Comm_set_errhandler", comm, mpi.constant("MPI_ERRORS_RETURN"))
        mpi.call("MPI_Comm_set_name", comm, name.encode()[:_NAME_BYTES])
        if options:
            info = ctypes.c_uint64(mpi.handle("MPI_Info_create"))
            for name, value in options.items():
                mpi.call("MPI_Info_set", info.value, f"slimpi_{name}".encode(), value.encode())
            mpi.call("MPI_Comm_set_info", comm, info.value)
            mpi.call("MPI_Info_free", ctypes.byref(info))
        return comm

    def limit(self, comm, seconds):
        """Sets how long this rank waits at most in later sums on a communicator. Called in a
        worker's thread."""
        if self._limits.get(comm) != seconds:
            self._limits[comm] = seconds
            self.mpi.set_timeout(comm, seconds)

    def free(self, comm):
        self._limits.pop(comm, None)
        self.mpi.call("MPI_Comm_free", ctypes.byref(ctypes.c_uint64(comm)))

    def sum(self, *arguments):
        """Sums a buffer in place. Called in a worker's thread, with the arguments of _sums()."""
        for what in self._sums(*arguments):
            self.mpi.call("MPI_Allreduce", *what)

    def start_sum(self, comm, *arguments):
        """Starts a sum with the arguments of sum(), and returns requests for finish_sum(). Without
        MPI_THREAD_MULTIPLE, and until a sum of the communicator has succeeded, slimpi might leave a
        nonblocking sum to MPI, which does not notice that ranks sum different tensors; in these
        cases the sum is blocking and no requests are returned."""
        if not self._threads or comm not in self._summed:
            self.sum(comm, *arguments)
            self._summed.add(comm)
            return []
        return [self.mpi.handle("MPI_Iallreduce", *what) for what in self._sums(comm, *arguments)]

    def _sums(self, comm, address, count, double=False, name="", matrices=()):
        mpi = self.mpi
        kind, bytes_each = ("MPI_DOUBLE", 8) if double else ("MPI_FLOAT", 4)
        most = 1 << 30  # the count of MPI_Allreduce is an int
        for first in range(0, count, most):
            part = min(most, count - first)
            if name:
                whole = first == 0 and part == count
                mpi.describe_next(name if whole else f"{name}, from {first}",
                                  matrices if whole else ())
            yield (mpi.constant("MPI_IN_PLACE"), address + first * bytes_each, part,
                   mpi.constant(kind), mpi.constant("MPI_SUM"), comm)

    def finish_sum(self, requests):
        """Waits for the requests that start_sum() returned. Called in any worker's thread."""
        for request in requests:
            self.mpi.call("MPI_Wait", ctypes.byref(ctypes.c_uint64(request)),
                          ctypes.create_string_buffer(STATUS_BYTES))

    def sum_blocks(self, comm, address, result, count):
        """Sums blocks of `count` floats, one for each rank, and writes the sum of this rank's block
        to `result`. Called in a worker's thread."""
        mpi = self.mpi
        mpi.call("MPI_Reduce_scatter_block", address, result, count, mpi.constant("MPI_FLOAT"),
                 mpi.constant("MPI_SUM"), comm)

    def gather(self, comm, address, result, count):
        """Gathers blocks of `count` floats of all ranks. Called in a worker's thread. address: this
        rank's block; None if the block already has its place in the result."""
        mpi = self.mpi
        kind = mpi.constant("MPI_FLOAT")
        mpi.call("MPI_Allgather", mpi.constant("MPI_IN_PLACE") if address is None else address,
                 count, kind, result, count, kind, comm)

    def begin_goodbyes(self, ranks):
        """Prepares goodbyes to groups, if `ranks` is the number of all ranks. Collective over a
        group of `ranks` ranks."""
        if ranks == self.size and self._goodbyes is None and self._threads:
            self._goodbyes = Goodbyes(self)

    def say_goodbye(self, ranks, number, sums):
        """Tells the ranks of a group that this rank leaves it after `sums` sums."""
        if self._goodbyes is not None and os.getpid() == self.process:
            self._goodbyes.send(ranks, number, sums)

    def hear_goodbyes(self):
        """Tells groups which ranks have left them. If MPI can deliver no messages, as after the
        failure of a rank, sums wait until their timeout instead."""
        try:
            messages = self._goodbyes.received() if self._goodbyes else ()
        except Error:
            return
        for rank, number, sums in messages:
            for group in alive(self.groups):
                if getattr(group, "number", None) == number:
                    group.take_goodbye(rank, sums)

    def abort(self):
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(_TIME_TO_FORWARD)
        status = _end.status or 1
        if status < 0:  # a signal
            with contextlib.suppress(ValueError):  # in a thread that cannot set it
                signal.signal(-status, signal.SIG_DFL)
                os.kill(os.getpid(), -status)
            status = 128 - status
        self.mpi.call("MPI_Abort", self.comm, status)
        os._exit(status)

    def _watch_leave(self):
        """Makes os._exit(0) end MPI in this process as a normal end does. Otherwise the other ranks
        would wait for this one, or mpiexec would kill them without a message."""
        leave = os._exit

        @functools.wraps(leave)
        def _exit(status):
            try:
                if status == 0:
                    self._end(self.mpi.slimpi.slimpi_finalize_now)
            finally:
                leave(status)

        os._exit = _exit

    def _wait_for_sums(self):
        """Waits for all sums. Returns False if MPI may still be in sums that were given up some
        seconds ago."""
        begin = time.monotonic()

        def gives_up():
            return time.monotonic() > max(self.stuck, begin) + _SECONDS_TO_FAIL

        # self.worker is waited for twice: first because its jobs may wait for those of the other
        # workers, and last because those jobs may submit jobs to it.
        workers = alive(self._workers)
        if not all(worker.wait(gives_up) for worker in (self.worker, *workers)):
            return False
        for worker in workers:
            worker.end(wait=True)
        return self.worker.wait(gives_up)

    def _end(self, finalize=None):
        """Ends MPI at the end of the program. finalize: the function that does so at once, in the
        worker's thread; None if exit() will do so."""
        if os.getpid() != self.process or self.mpi.integer("MPI_Finalized"):  # a child by fork
            return
        if _end.status != 0:
            self.abort()
        # If possible, exit() aborts the job or ends MPI, because only exit() knows the status of
        # `raise SystemExit(7)`.
        if not self._wait_for_sums():
            # A program that has initialized MPI may end it before exit() calls slimpi.
            if (finalize is not None or not self.initialized
                    or self.mpi.slimpi.slimpi_abort_at_exit() != 0):
                self.abort()
            return
        for group in alive(self.groups):
            group.say_goodbye()
        if not self.initialized:
            return
        if finalize is None and self.mpi.slimpi.slimpi_finalize_at_exit() != 0:
            finalize = functools.partial(self.mpi.call, "MPI_Finalize")
        if finalize is not None:
            self.worker.do(finalize)


def world():
    """Returns this process's World. The first call makes it and is collective over all ranks."""
    global _world
    with _lock:
        if _world is None:
            _world = World()
    return _world


def hear_goodbyes():
    """Tells the groups which ranks have left them, if this process has a World."""
    if _world is not None:
        _world.hear_goodbyes()


def give_up():
    """Notes that MPI may still be in a sum."""
    if _world is not None:
        _world.stuck = min(_world.stuck, time.monotonic())


# Python runs exit handlers in reverse order, so handlers that are registered after this import run
# before this one and may still make sums.
atexit.register(lambda: _world and _world._end())
