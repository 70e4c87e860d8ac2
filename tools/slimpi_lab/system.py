# SPDX-License-Identifier: BSD-3-Clause
"""Calls the kernel and the tools of the system."""
import ctypes
import os
import subprocess
import sys

NOT_HERE = 77  # exit status if this machine allows no hosts; tests count it as skipped

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000

_libc = ctypes.CDLL(None, use_errno=True)


class LabError(Exception):
    """An error with a line for the user and the program's exit status."""

    def __init__(self, text, status=NOT_HERE):
        super().__init__(text)
        self.status = status


def _check(result, what):
    if result != 0:
        raise LabError(f"{what}: {os.strerror(ctypes.get_errno())}")


def unshare(flags):
    _check(_libc.unshare(flags), "namespaces are not allowed here (unshare)")


def mount(source, target, kind, flags=0):
    words = [word.encode() if word else None for word in (source, target, kind)]
    result = _libc.mount(*words, ctypes.c_ulong(flags), None)
    _check(result, f"cannot mount {kind or source} on {target}")


def say(*words):
    print("slimpi-lab:", *words, file=sys.stderr, flush=True)


def run(*command, script=None):
    """Runs a tool of the system and returns its output. If the tool fails, raises a LabError with
    the first line of its error output."""
    try:
        done = subprocess.run(command, input=script, capture_output=True, text=True)
    except FileNotFoundError:
        raise LabError(f"{command[0]} was not found: install iproute2 and util-linux") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise LabError(f"{' '.join(command)}: {lines[0]}")
    return done.stdout
