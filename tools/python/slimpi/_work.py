# SPDX-License-Identifier: BSD-3-Clause
"""The Work objects that torch.distributed gets for sums in flight, and their time limit."""
import contextlib
import threading
import time
from datetime import timedelta

import torch
from torch._C._distributed_c10d import Work

from ._mpi import Error
from ._sums import Pending
from ._worker import run_job
from ._world import give_up, hear_goodbyes

_GRACE_SECONDS = 5  # after the timeout; slimpi's own error, which comes at the timeout, says more
_POLL_SECONDS = 1   # time between two searches for sums that take too long

# Whether C++ code of PyTorch that holds a Work also keeps its Python object alive, as it does from
# 2.7 on.
_KEEPS_WORK = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 7)

_pending = set()
_held = set()  # Works that C++ code has not yet waited for: see hold()
_watcher = None


def _expire_late():
    if _pending:
        run_job(hear_goodbyes)
    for one in list(_pending):
        run_job(one.check)


def _watch():
    while True:
        time.sleep(_POLL_SECONDS)
        _expire_late()  # a function: while this thread sleeps, it keeps no SumWork alive


def _start_watcher():
    """Starts the thread that calls _expire_late(), if none runs. Without it, as in exit handlers
    from Python 3.12 on, a sum still has slimpi's own timeout."""
    global _watcher
    if _watcher is None:
        thread = threading.Thread(target=_watch, name="slimpi timeout", daemon=True)
        with contextlib.suppress(RuntimeError):
            thread.start()
            _watcher = thread


class SumWork(Work, Pending):
    """A Pending as a Work. wait() and the future raise the exception that a step raised in slimpi's
    thread."""

    def __init__(self, name, tensors, seconds, streams, why_never=lambda: None):
        """tensors: the results, all on one device. seconds: the time limit. streams: the streams of
        the worker's thread, by device. why_never: a function that returns why the sum can never
        end; None if it can."""
        Work.__init__(self)
        Pending.__init__(self, tensors, tensors[0].device if tensors else torch.device("cpu"),
                         streams)
        self.name, self._seconds, self._why_never = name, seconds, why_never
        self._deadline = time.monotonic() + seconds + _GRACE_SECONDS
        self._asked = False  # whether the program asked for the future
        _pending.add(self)
        _start_watcher()

    def hold(self):
        """Keeps this object alive for C++ code that will call wait() or get_future()."""
        if not _KEEPS_WORK:
            _held.add(self)

    def _complete(self):
        _pending.discard(self)
        with self._lock:
            if not self._asked:
                Pending._complete(self)
                return
        # The future is completed in a thread of its own, because its callbacks may wait for sums of
        # this thread.
        try:
            threading.Thread(target=Pending._complete, args=(self,), name="slimpi future").start()
        except RuntimeError:  # no room, or the program is ending: Python 3.12 starts none then
            Pending._complete(self)

    def check(self):
        """Ends the Work with an error if the sum can never end or has taken too long."""
        reason = self._why_never()
        if reason is None and time.monotonic() <= self._deadline:
            return
        if self.began:
            give_up()
        self.end(Error(f"{self.name}: {reason}") if reason else
                 self._late(self._seconds, "the timeout of the process group"))

    def _late(self, seconds, limit):
        return Error(f"{self.name} has not ended within {seconds:g} s, {limit}: a rank did not "
                     "call it, or has ended")

    def wait(self, timeout=timedelta(0)):
        """Returns when the sum is complete, also on a GPU, because MPI knows nothing of streams. If
        the caller's timeout ends the wait, the sum continues, as with gloo."""
        seconds = timeout.total_seconds()
        _held.discard(self)
        if not self._ended.wait(seconds if seconds > 0 else None):
            raise self._late(seconds, "the timeout of wait()")
        if self.error is not None:
            raise self.error
        return True

    def synchronize(self):
        self.wait()

    def block_current_stream(self):
        self.wait()

    def is_completed(self):
        return self._ended.is_set()

    def is_success(self):
        return self._ended.is_set() and self.error is None

    def exception(self):
        return self.error

    def get_future(self):
        _held.discard(self)
        with self._lock:
            self._asked = True
        return self.future

    def result(self):
        return self._result
