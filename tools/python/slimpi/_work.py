# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed's Work for sums on their way, and their time limit."""
import threading
import time
from datetime import timedelta

import torch
from torch._C._distributed_c10d import Work

from ._mpi import Error
from ._sums import Place, unwrapped
from ._world import give_up, hear_goodbyes

_GRACE_SECONDS = 5  # after the timeout; slimpi has the same timeout, and its error says more
_POLL_SECONDS = 1   # between two searches for sums that take too long

# Whether PyTorch's C++ code keeps the Python object of a Work that it holds, as from 2.7 on.
_KEEPS_WORK = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 7)

_pending = set()
_held = set()  # Works of C++ code that has not waited for them yet: see hold()
_watcher = None


def _expire_late():
    if _pending:
        hear_goodbyes()
    for one in list(_pending):
        one.check()


def _watch():
    while True:
        time.sleep(_POLL_SECONDS)
        _expire_late()  # a function: while this thread sleeps, it keeps no SumWork alive


class SumWork(Work):
    """A sum on its way. wait() and the future raise what its thread raised."""

    def __init__(self, name, tensors, seconds, streams, why_never=lambda: None):
        """tensors: the results, all on one device. seconds: the time limit. streams: the streams of
        the worker's thread, by device. why_never: returns why the sum can never end; None if it
        can."""
        global _watcher
        super().__init__()
        self.name, self._tensors, self._seconds, self._error = name, tensors, seconds, None
        self._place = Place(tensors[0].device if tensors else torch.device("cpu"), streams)
        self._deadline = time.monotonic() + seconds + _GRACE_SECONDS
        self._why_never, self._began = why_never, False
        self._ended, self._lock = threading.Event(), threading.Lock()
        self._asked = False  # whether the program asked for the future
        self._outcome = torch.futures.Future(devices=self._place.devices)
        self._future = self._outcome.then(unwrapped)
        _pending.add(self)
        if _watcher is None:
            _watcher = threading.Thread(target=_watch, name="slimpi timeout", daemon=True)
            _watcher.start()

    def hold(self):
        """Keeps this object for C++ code that will call wait() or get_future()."""
        if not _KEEPS_WORK:
            _held.add(self)

    def run(self, function, *arguments):
        """Makes the sum, in the worker's thread."""
        if self._ended.is_set():
            return
        self._began = True
        try:
            self._place.wait()
            with torch.inference_mode():
                self._place.run(function, *arguments)
            self._place.finish()
        except BaseException as error:  # of any kind; wait() raises it
            self._end(error)
        else:
            self._end()

    def _end(self, error=None):
        with self._lock:
            if self._ended.is_set():
                return
            self._error = error
            self._ended.set()
            asked = self._asked
        _pending.discard(self)
        if asked:  # another thread: callbacks of the future may wait for sums of this thread
            threading.Thread(target=self._complete, name="slimpi future").start()

    def _complete(self):
        outcome = self._tensors if self._error is None else self._error
        self._place.run(self._outcome.set_result, outcome)

    def check(self):
        """Ends the Work with an error if the sum can never end, or takes too long."""
        reason = self._why_never()
        if reason is None and time.monotonic() <= self._deadline:
            return
        if self._began:
            give_up()
        self._end(Error(f"{self.name}: {reason}") if reason else
                  self._late(self._seconds, "the timeout of the process group"))

    def _late(self, seconds, limit):
        return Error(f"{self.name} has not ended within {seconds:g} s, {limit}: a rank did not "
                     "call it, or has ended")

    def wait(self, timeout=timedelta(0)):
        """Returns when the sum is complete, also on a GPU, because MPI knows no streams. If the
        caller's timeout ends the wait, the sum goes on, as with gloo."""
        seconds = timeout.total_seconds()
        _held.discard(self)
        if not self._ended.wait(seconds if seconds > 0 else None):
            raise self._late(seconds, "the timeout of wait()")
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self):
        self.wait()

    def block_current_stream(self):
        self.wait()

    def is_completed(self):
        return self._ended.is_set()

    def is_success(self):
        return self._ended.is_set() and self._error is None

    def exception(self):
        return self._error

    def get_future(self):
        _held.discard(self)
        with self._lock:
            first, self._asked = not self._asked, True
            complete = first and self._ended.is_set()
        if complete:
            self._complete()
        return self._future

    def result(self):
        return self._tensors
