# SPDX-License-Identifier: BSD-3-Clause
"""Sums on their way, as torch.distributed's Work, and the time that they may take."""
import threading
import time
from datetime import timedelta

import torch
from torch._C._distributed_c10d import Work

from ._mpi import Error
from ._sums import Place, unwrapped
from ._world import world as _world

_GRACE_SECONDS = 5  # slimpi has the same timeout, and says more
_POLL_SECONDS = 1   # between two looks for sums that take too long

_pending = set()
_watcher = None


def _watch():
    while True:
        time.sleep(_POLL_SECONDS)
        for one in list(_pending):
            if time.monotonic() > one.deadline:
                one.expire()


class SumWork(Work):
    """A sum on its way. An error in the thread is raised by wait() and by the future."""

    def __init__(self, name, tensors, seconds, streams):
        """tensors: the results; all in one place. streams: the thread's, by device."""
        global _watcher
        super().__init__()
        self.name, self._tensors, self._seconds, self._error = name, tensors, seconds, None
        self._place = Place(tensors[0].device if tensors else torch.device("cpu"), streams)
        self.deadline = time.monotonic() + seconds + _GRACE_SECONDS
        self._ended, self._lock = threading.Event(), threading.Lock()
        self._asked = False  # for the future
        self._outcome = torch.futures.Future(devices=self._place.devices)
        self._future = self._outcome.then(unwrapped)
        _pending.add(self)
        if _watcher is None:
            _watcher = threading.Thread(target=_watch, name="slimpi timeout", daemon=True)
            _watcher.start()

    def run(self, function, *arguments):
        """In the thread."""
        try:
            self._place.wait()
            with torch.inference_mode():
                self._place.run(function, *arguments)
            self._place.finish()
        except BaseException as error:  # for wait(), whatever it is
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
        if asked:  # callbacks may wait for other sums of this thread
            threading.Thread(target=self._complete, name="slimpi future").start()

    def _complete(self):
        outcome = self._tensors if self._error is None else self._error
        self._place.run(self._outcome.set_result, outcome)

    def expire(self):
        """Gives the sum up, which MPI may never end."""
        _world().stuck = True
        self._end(self._late(self._seconds, "init_process_group"))

    def _late(self, seconds, function):
        return Error(f"{self.name} has not ended within {seconds:g} s: a rank did not call it, or "
                     f"has ended ({function}(timeout=...))")

    def wait(self, timeout=timedelta(0)):
        """Returns when the sum is there, also where it is on a GPU: MPI knows no streams. After a
        timeout of the caller's the sum goes on, as gloo's does."""
        seconds = timeout.total_seconds()
        if not self._ended.wait(seconds if seconds > 0 else None):
            raise self._late(seconds, "wait")
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
        with self._lock:
            first, self._asked = not self._asked, True
            complete = first and self._ended.is_set()
        if complete:
            self._complete()
        return self._future

    def result(self):
        return self._tensors
