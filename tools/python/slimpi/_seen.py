# SPDX-License-Identifier: BSD-3-Clause
"""Counts the sums of torch.distributed, except those of DistributedDataParallel, for the line that
slimpi-run --torch prints at the end."""
import os
import re
import sys
import threading
import types

from . import _late
from ._late import OLDEST

_MOST_PLACES = 3  # most lines of the program that a message names
# Modules whose lines do not count as the program's. Deprecated functions of PyTorch, such as
# all_reduce_coalesced, are called by a function of typing_extensions or of Python's warnings.
_LIBRARIES = r"(torch|slimpi|deepspeed|accelerate|typing_extensions|warnings|_py_warnings)\b"
_SUMS = r"_?(all_)?reduce(_|$)"  # a pattern, because PyTorch gets new functions now and then
_calls = {}  # by function: number of calls, and their bytes
_taken = {}  # by function: number of compressed sums, and their bytes
_exact = {}  # by kind, such as BY_C: number of exact sums, and their bytes
_places = {}  # lines of the program that made sums of _exact, in order
_left = {}   # by backend and reason: number of sums left to the backend, and their bytes
BY_C = "functional sums"  # the kind of sums of DTensor and of functional collectives
_BY_HAND, _MIXED = "sums by hand", "sums by hand of gradients on some ranks only"
_lock = threading.Lock()
_here = threading.local()  # inside: a counted call, because functions of PyTorch call each other


def bytes_of(value):
    """Returns how many bytes a tensor has, or all tensors of a list, which may contain lists."""
    if hasattr(value, "element_size"):
        return value.numel() * value.element_size()
    return sum(map(bytes_of, value)) if isinstance(value, (list, tuple)) else 0


def _add(counts, key, length):
    with _lock:
        calls, total = counts.get(key, (0, 0))
        counts[key] = calls + 1, total + length


def count(name, length, reason=None, backend=None):
    """Counts a sum of a process group. reason: why the backend of the group makes it; None if it is
    compressed."""
    if reason == BY_C:
        _add(_exact, reason, length)
    elif reason:
        _add(_left.setdefault(backend, {}), reason, length)
    else:
        _add(_taken, name, length)


def count_exact(length, place, is_mixed):
    """Counts a sum that MPI made without compression. place: the line of the program that asked for
    the sum. is_mixed: whether its tensors are gradients on some ranks but not on all."""
    _add(_exact, _MIXED if is_mixed else _BY_HAND, length)
    if place:
        _places[place] = None


def place_of_caller():
    """Returns FILE:LINE of the program's code that asks for a sum; None if no such line is
    found."""
    frame = sys._getframe(1)
    while frame is not None and re.match(_LIBRARIES, frame.f_globals.get("__name__") or ""):
        frame = frame.f_back
    return frame and f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def is_counted():
    return bool(_taken or _exact or _left)


def _counted(function, *arguments, **keywords):
    if getattr(_here, "inside", False):
        return function(*arguments, **keywords)
    # The longest argument is the input, also for reduce_scatter, which gets a shorter tensor for
    # the result.
    _add(_calls, function.__name__, max(map(bytes_of, (*arguments, *keywords.values())),
                                        default=0))
    _here.inside = True
    try:
        return function(*arguments, **keywords)
    finally:
        _here.inside = False


def watch(module):
    """Makes the functions of torch.distributed.distributed_c10d that make sums count their
    calls."""
    for name, function in list(vars(module).items()):
        # isinstance() would ask a deprecated object of PyTorch for its class, and get a warning.
        if type(function) is types.FunctionType and re.match(_SUMS, name):
            _late.replace(module, name)(_counted)


def _size(count):
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            break
        count /= 1024
    else:
        unit = "GiB"
    return f"{count:.1f} {unit}" if unit != "bytes" else f"{count:.0f} bytes"


def _text(counts):
    return ", ".join(f"{calls} {name} of {_size(total / calls)} on average"
                     for name, (calls, total) in counts.items())


def _exact_text():
    """Yields a text for each kind of sums that were not compressed, with advice on how to compress
    them."""
    for kind, (calls, total) in sorted(_exact.items()):
        advice = ""
        if kind == _BY_HAND:
            places = list(_places)[:_MOST_PLACES] + ["..."] * (len(_places) > _MOST_PLACES)
            advice = (f" ({', '.join(places)}; if these are gradients, "
                      "slimpi.torch.compress(tensor) before the sum compresses it)")
        if kind == BY_C:
            advice = ("; if compiled code sums gradients, @torch.compiler.disable on the function "
                      "that sums them lets slimpi compress them")
        yield f"{calls} {kind}, {_size(total)}: exact{advice}"


def of_groups(hooked):
    """Returns a sentence about the sums that MPI made for process groups; None if there is nothing
    to say. hooked: whether a model has slimpi's hook."""
    rest = [*_exact_text(),
            *(f"left to {name}: {_text(counts)}" for name, counts in _left.items())]
    if _taken:
        return "; ".join([f"torch.distributed on rank 0, by slimpi: {_text(_taken)}", *rest])
    if hooked:
        return "; ".join(["torch.distributed on rank 0", *rest]) if _exact else None
    return "; ".join(["the program made no DistributedDataParallel model, and no sum that slimpi "
                      "knows to be of gradients", *rest])


def advice():
    """Returns a sentence for a program without slimpi's backend: which sums it made, and how to
    change it so that slimpi compresses them."""
    made = _text(_calls)
    if any("scatter" in name for name in _calls):
        return (f"; rank 0 called {made}, as FSDP does, which slimpi takes on CPUs with PyTorch "
                f"{OLDEST[0]}.{OLDEST[1]} and later: wrap the model in DistributedDataParallel "
                "where it fits into each rank's memory, or sum gradients by slimpi.allreduce")
    if made:
        return (f"; rank 0 called {made}: wrap the model in DistributedDataParallel, or sum "
                "gradients by slimpi.allreduce in place of torch.distributed")
    return ": wrap the model in one, or sum gradients by slimpi.allreduce"
