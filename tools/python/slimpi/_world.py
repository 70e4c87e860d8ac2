# SPDX-License-Identifier: BSD-3-Clause
"""The process's part in the MPI job: one thread that makes all MPI calls, and how it ends.

The thread initializes MPI unless the program did, so any thread level serves. At the end of the
program it finalizes what it initialized. Where an exception ends the program, the job is aborted:
the other ranks wait for sums that never come.
"""
import atexit
import ctypes
import os
import queue
import sys
import threading
import time

from . import _join, _launcher
from ._mpi import Error, Mpi, WrongLauncher

_TIME_TO_FORWARD = 0.2  # seconds; launchers drop what ranks have written just before they abort

_world = None
_lock = threading.Lock()


class Worker:
    """Runs jobs in the order in which they were submitted. It keeps no process alive."""

    def __init__(self):
        self._jobs = queue.SimpleQueue()
        threading.Thread(target=self._run, name="slimpi", daemon=True).start()

    def _run(self):
        while True:
            self._jobs.get()()

    def submit(self, job):
        self._jobs.put(job)

    def do(self, function, *arguments):
        """Runs a function in the thread and returns what it returns or raises."""
        outcome, done = [], threading.Event()

        def job():
            try:
                outcome.append((function(*arguments), None))
            except BaseException as error:  # for the caller, whatever it is
                outcome.append((None, error))
            done.set()

        self.submit(job)
        done.wait()
        value, error = outcome[0]
        if error is not None:
            raise error
        return value


class World:
    """MPI_COMM_WORLD."""

    def __init__(self):
        self.process = os.getpid()
        self.worker = Worker()
        self.communicators = {}  # by ranks and options
        self.models = {}         # how many models a communicator serves
        self.numbers = 0         # the last number of a communicator of the backend, on this rank
        self.stuck = False       # whether a sum was given up that MPI has not ended
        self._workers = [self.worker]
        self.status = 0          # not 0: an exception, or sys.exit, ends the program with it
        self.worker.do(self._begin)
        atexit.register(self._end)
        self._watch_end()

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

    def communicator(self, ranks, options):
        """A communicator of these ranks of the world with these options; collective over them."""
        key = (tuple(ranks), tuple(sorted(options.items())))
        if key not in self.communicators:
            self.communicators[key] = self.worker.do(self.new_communicator, ranks, options)
        return self.communicators[key]

    def new_worker(self):
        """A thread for the sums of one communicator; the one that there is where MPI cannot be
        called by several. Then ranks must make the sums of all communicators in one order."""
        if not self._threads:
            return self.worker
        self._workers.append(Worker())
        return self._workers[-1]

    def new_communicator(self, ranks, options, tag=0):
        """In a worker's thread. Those that other threads make of the same ranks have other tags."""
        mpi = self.mpi
        world = ctypes.c_uint64(mpi.handle("MPI_Comm_group", self.comm))
        group = ctypes.c_uint64(mpi.handle("MPI_Group_incl", world.value, len(ranks),
                                           (ctypes.c_int * len(ranks))(*ranks)))
        comm = mpi.handle("MPI_Comm_create_group", self.comm, group.value, tag)
        mpi.call("MPI_Group_free", ctypes.byref(group))
        mpi.call("MPI_Group_free", ctypes.byref(world))
        mpi.call("MPI_Comm_set_errhandler", comm, mpi.constant("MPI_ERRORS_RETURN"))
        mpi.call("MPI_Comm_set_name", comm, b"slimpi (Python)")
        if options:
            info = ctypes.c_uint64(mpi.handle("MPI_Info_create"))
            for name, value in options.items():
                mpi.call("MPI_Info_set", info.value, f"slimpi_{name}".encode(), value.encode())
            mpi.call("MPI_Comm_set_info", comm, info.value)
            mpi.call("MPI_Info_free", ctypes.byref(info))
        return comm

    def free(self, comm):
        self.mpi.call("MPI_Comm_free", ctypes.byref(ctypes.c_uint64(comm)))

    def sum(self, comm, address, count, double=False, name="", matrices=()):
        """Sums a buffer in place; in the worker's thread."""
        mpi = self.mpi
        kind, bytes_each = ("MPI_DOUBLE", 8) if double else ("MPI_FLOAT", 4)
        most = 1 << 30  # the count of MPI_Allreduce is an int
        for first in range(0, count, most):
            part = min(most, count - first)
            if name:
                whole = first == 0 and part == count
                mpi.describe_next(name if whole else f"{name}, from {first}",
                                  matrices if whole else ())
            mpi.call("MPI_Allreduce", mpi.constant("MPI_IN_PLACE"), address + first * bytes_each,
                     part, mpi.constant(kind), mpi.constant("MPI_SUM"), comm)

    def sum_blocks(self, comm, address, result, count):
        """Sums a block of `count` floats for each rank, and writes this rank's; in a worker's
        thread."""
        mpi = self.mpi
        mpi.call("MPI_Reduce_scatter_block", address, result, count, mpi.constant("MPI_FLOAT"),
                 mpi.constant("MPI_SUM"), comm)

    def abort(self):
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(_TIME_TO_FORWARD)
        status = self.status or 1
        self.mpi.call("MPI_Abort", self.comm, status)
        os._exit(status)

    def _watch_end(self):
        """Notes whether an exception or sys.exit with a status ends the program."""
        hook, leave = sys.excepthook, sys.exit

        def excepthook(kind, error, trace):
            hook(kind, error, trace)
            if os.getpid() == self.process:
                self.status = 1

        def exit(status=None):
            if os.getpid() == self.process:
                self.status = status if isinstance(status, int) else int(status is not None)
            leave(status)

        sys.excepthook, sys.exit = excepthook, exit

    def _end(self):
        if os.getpid() != self.process:  # a child by fork
            return
        if self.mpi.integer("MPI_Finalized"):
            return
        if self.status != 0 or self.stuck:
            self.abort()
        for worker in self._workers:
            worker.do(lambda: None)  # no sum is in flight any more
        # Only exit() sees the status of `raise SystemExit(1)`.
        if self.initialized and self.mpi.slimpi.slimpi_finalize_at_exit() != 0:
            self.worker.do(self.mpi.call, "MPI_Finalize")


def world():
    """The one world, begun at first use; collective over all ranks then."""
    global _world
    with _lock:
        if _world is None:
            _world = World()
    return _world
