# SPDX-License-Identifier: BSD-3-Clause
"""Prints the lines of slimpi-run --torch, and knows which process is a rank."""
import os
import sys

from . import _threads

takes_all = os.environ.get("SLIMPIRUN_TORCH_SUMS") == "all"
said = set()
_MARK = "_SLIMPI_TORCH"  # the pid of the rank; processes that it starts are no ranks


def say(text):
    """Prints a line, unless the same line was printed before."""
    if text not in said:
        said.add(text)
        print(f"slimpi-run: --torch: {text}", file=sys.stderr, flush=True)


def of_other_sums(backend):
    return f"the rest by {backend}" if takes_all else "other sums are exact"


def of_one_node(nodes):
    if not _threads.is_one_node(nodes):
        return ""
    return ". One node: nothing is compressed; --ranks-per-node 1 tries it"


def mark_rank():
    os.environ[_MARK] = str(os.getpid())


def unmark_rank():
    """Makes this process no rank any more, so that slimpi changes nothing in it from now on."""
    os.environ.pop(_MARK, None)


def is_rank():
    """Returns whether mark_rank() was called in this process."""
    return os.environ.get(_MARK) == str(os.getpid())


def is_child():
    """Returns whether a rank of the job has started this process, which is then no rank itself."""
    return _MARK in os.environ and not is_rank()
