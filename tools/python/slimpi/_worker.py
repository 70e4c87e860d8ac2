# SPDX-License-Identifier: BSD-3-Clause
"""The threads in which slimpi makes sums."""
import contextlib
import queue
import threading
import traceback
from concurrent.futures import Future


def run_job(job):
    """Calls job(), whose exceptions must not end a thread that has other jobs."""
    try:
        job()
    except BaseException:  # jobs tell their errors themselves; this one could not
        with contextlib.suppress(Exception):  # of a closed sys.stderr
            traceback.print_exc()


class Worker:
    """A daemon thread that runs jobs in the order in which they were submitted. If the process can
    start no thread, as in exit handlers from Python 3.12 on, submit() runs the job."""

    def __init__(self, ends=True):
        """ends: whether end() ends the thread; False if several users share the Worker."""
        self._jobs, self._ends = queue.SimpleQueue(), ends
        self._thread = threading.Thread(target=self._run, name="slimpi", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._thread = None

    def _run(self):
        while (job := self._jobs.get()) is not None:
            run_job(job)
            job = None  # a thread that waits keeps no tensors and no State alive

    def submit(self, job):
        if self._thread is None:
            run_job(job)
        else:
            self._jobs.put(job)

    def end(self, wait=False):
        """Ends the thread after its jobs, unless several users share the Worker. wait: whether to
        return only after the thread has ended."""
        if self._ends:
            self._jobs.put(None)
        if wait and self._thread is not None:
            self._thread.join()

    def wait(self, gives_up):
        """Waits until the jobs that were submitted so far have run. Returns False if gives_up(),
        which is called each second, returns true before that."""
        idle = threading.Event()
        self.submit(idle.set)
        while self._thread and self._thread.is_alive() and not idle.wait(1):
            if gives_up():
                return False
        return True

    def do(self, function, *arguments):
        """Runs a function in the thread. Returns its result, or raises its exception."""
        return self.start(function, *arguments).result()

    def start(self, function, *arguments):
        """Runs a function in the thread, and returns a future for its result at once."""
        outcome = Future()

        def job():
            try:
                outcome.set_result(function(*arguments))
            except BaseException as error:  # of any kind; the caller gets it
                outcome.set_exception(error)

        self.submit(job)
        return outcome
