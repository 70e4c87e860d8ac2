# SPDX-License-Identifier: BSD-3-Clause
"""Finds out how the program is about to end, so that _world.py can end MPI accordingly and _run.py
can say what slimpi did."""
import functools
import os
import signal
import sys
import threading

# The exit status, or -signal, with which an exception or sys.exit is about to end the program. If
# the program catches the SystemExit of sys.exit, it is 0 again.
status = 0


class _Leaving:
    """An object that the SystemExit of sys.exit refers to, so that both are deleted together. If a
    Python function is running then, the program has caught the SystemExit. Otherwise the
    interpreter deletes them because the program ends."""

    def __del__(self, frame=sys._getframe):
        try:
            frame(1)
        except ValueError:  # no Python function runs any more
            return
        _note(0)


def _note(ends):
    global status
    status = ends


def watch_end():
    """Keeps `status` up to date from now on. A later call is for the functions that the program has
    put in the place of sys.excepthook and sys.exit since."""
    hook, leave, process = sys.excepthook, sys.exit, os.getpid()

    def excepthook(kind, error, trace):
        hook(kind, error, trace)
        # Programs also call this function themselves. Only the interpreter sets last_value before
        # it does.
        if os.getpid() == process and getattr(sys, "last_value", None) is error:
            _note(-signal.SIGINT if issubclass(kind, KeyboardInterrupt) else 1)

    @functools.wraps(leave)
    def exit(status=None):
        try:
            leave(status)
        except SystemExit as end:
            # In any other thread than the main thread sys.exit ends only that thread.
            if os.getpid() == process and threading.current_thread() is threading.main_thread():
                code = status & 0xff if isinstance(status, int) else 0  # as exit() does
                _note(code or int(status not in (None, 0)))
                end._slimpi = getattr(end, "_slimpi", None) or _Leaving()
            raise

    sys.excepthook, sys.exit = excepthook, exit
