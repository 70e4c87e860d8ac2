# SPDX-License-Identifier: BSD-3-Clause
"""Chooses how many threads a rank computes with if ranks share processors.
"""
import ctypes
import functools
import os
from collections import Counter

from ._mpi import mapped

_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_free = False  # slimpi may choose, because neither user nor program has
_set_num_threads = None  # PyTorch's own torch.set_num_threads


def watch(torch):
    """Notes whether the program chooses its number of threads. Call it as soon as PyTorch is
    imported."""
    global _free, _set_num_threads
    _free = not any(name in os.environ for name in _VARIABLES)
    _set_num_threads = torch.set_num_threads

    @functools.wraps(_set_num_threads)
    def chosen(number):
        global _free
        _free = False
        _set_num_threads(number)

    torch.set_num_threads = chosen


def place():
    """Returns an id of the running kernel, which all containers of a machine share, and a
    hexadecimal mask of the processors that this process may use."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            kernel = file.read().strip()
    except OSError:
        kernel = os.uname().nodename
    return kernel, f"{sum(1 << processor for processor in os.sched_getaffinity(0)):x}"


def is_one_node(nodes):
    """Returns whether slimpi treats all ranks as one node, on which it compresses nothing."""
    return (nodes == 1 and os.environ.get("SLIMPI_RANKS_PER_NODE", "0") in ("", "0") and
            os.environ.get("SLIMPI_HIERARCHY", "").lower() != "flat")


def _processors(mask):
    return [bit for bit, digit in enumerate(reversed(f"{int(mask, 16):b}")) if digit == "1"]


def share(places, rank):
    """Returns three numbers for a rank: its share of its processors (at least 1), how many ranks
    use these processors, and how many processors these are."""
    places = [(kernel, _processors(mask)) for kernel, mask in places]
    kernel, mine = places[rank]
    users = Counter(processor for other, processors in places if other == kernel
                    for processor in processors)
    sharing = sum(other == kernel and not set(mine).isdisjoint(processors)
                  for other, processors in places)
    threads = max(1, int(sum(1 / users[processor] for processor in mine) + 1e-6))
    return threads, sharing, len(mine)


def limit(torch, places, rank):
    """Lowers this rank's number of threads to its share of the processors, unless the user or the
    program has chosen the number. Returns a sentence if the number changed. places: place() of all
    ranks."""
    threads, sharing, processors = share(places, rank)
    before = torch.get_num_threads()
    most = max([before] + [blas.openblas_get_num_threads() for blas in _openblas()])
    if not _free or threads >= most:
        return None
    _set_num_threads(min(threads, before))
    for blas in _openblas():
        blas.openblas_set_num_threads(min(threads, blas.openblas_get_num_threads()))
    return (f"{sharing} ranks share {processors} processors, so each computes with "
            f"{threads} thread(s), not {most}; OMP_NUM_THREADS chooses another number")


def _openblas():
    """Returns the copies of OpenBLAS in this process. They must be told the number of threads,
    because Debian's PyTorch computes with OpenBLAS and does not pass its own number on."""
    found = []
    for path in mapped(r"blas.*\.so"):
        try:
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        except OSError:  # the file was replaced after it was mapped
            continue
        if hasattr(library, "openblas_set_num_threads"):
            found.append(library)
    return found
