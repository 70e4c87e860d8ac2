# SPDX-License-Identifier: BSD-3-Clause
"""How the program is about to end: _world.py then ends MPI, and _run.py says what slimpi did."""
import functools
import os
import signal
import sys
import threading


class _Leaving:
    """An object that the SystemExit of sys.exit holds, so that both are deleted together. If that
    happens in a Python function, the program has caught the SystemExit, and note(0) is called.
    Otherwise the interpreter deletes them, and the program ends."""

    def __init__(self, note):
        self._note = note

    def __del__(self, frame=sys._getframe):
        try:
            frame(1)
        except ValueError:  # no Python function runs any more
            return
        self._note(0)


def watch_end(note):
    """Calls note(status) from now on when an exception or sys.exit is about to end the program with
    that status, or with the signal -status, and note(0) if the program then catches the SystemExit
    of sys.exit."""
    hook, leave, process = sys.excepthook, sys.exit, os.getpid()

    def excepthook(kind, error, trace):
        hook(kind, error, trace)
        # Programs call this function, too. The interpreter sets last_value before it does.
        if os.getpid() == process and getattr(sys, "last_value", None) is error:
            note(-signal.SIGINT if issubclass(kind, KeyboardInterrupt) else 1)

    @functools.wraps(leave)
    def exit(status=None):
        try:
            leave(status)
        except SystemExit as end:
            # In another thread sys.exit ends that thread only.
            if os.getpid() == process and threading.current_thread() is threading.main_thread():
                code = status & 0xff if isinstance(status, int) else 0  # as exit() does
                note(code or int(status not in (None, 0)))
                end._slimpi = getattr(end, "_slimpi", ()) + (_Leaving(note),)  # one of each watcher
            raise

    sys.excepthook, sys.exit = excepthook, exit
