# SPDX-License-Identifier: BSD-3-Clause
"""What torch.distributed sums besides DistributedDataParallel: the last line of slimpi-run --torch
names it."""
import functools
import re
import types

from ._register import OLDEST

_SUMS = r"_?(all_)?reduce(_|$)"  # PyTorch has new ones now and then
_calls = {}  # by function: how many, and their bytes
_taken = {}  # the same of those that MPI got
_left = {}   # by backend and reason: those that were left to it
_counts = True  # false inside of a call: functions of PyTorch call each other


def bytes_of(value):
    """Of a tensor, or of a list of tensors or of lists."""
    if hasattr(value, "element_size"):
        return value.numel() * value.element_size()
    return sum(map(bytes_of, value)) if isinstance(value, (list, tuple)) else 0


def _add(counts, key, length):
    calls, total = counts.get(key, (0, 0))
    counts[key] = calls + 1, total + length


def count(name, length, reason, backend):
    """A sum of a process group; the reason why its backend makes it, None where MPI does."""
    if reason:
        _add(_left.setdefault(backend, {}), reason, length)
    else:
        _add(_taken, name, length)


def is_counted():
    return bool(_taken or _left)


def _counted(function):
    @functools.wraps(function)
    def call(*arguments, **keywords):
        global _counts
        if not _counts:
            return function(*arguments, **keywords)
        # The longest argument is what is summed: reduce_scatter has its part of the sum, too.
        _add(_calls, function.__name__, max(map(bytes_of, (*arguments, *keywords.values())),
                                            default=0))
        _counts = False
        try:
            return function(*arguments, **keywords)
        finally:
            _counts = True

    return call


def watch(module):
    """Counts the calls of the functions of torch.distributed.distributed_c10d."""
    for name, function in list(vars(module).items()):
        # isinstance() would ask a deprecated object of PyTorch for its class, and get a warning.
        if type(function) is types.FunctionType and re.match(_SUMS, name):
            setattr(module, name, _counted(function))


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


def of_groups(hooked):
    """What MPI summed for process groups, in a sentence. `hooked`: whether a model has slimpi's
    hook. None where that is all there is to say."""
    left = "; ".join(f"left to {name}: {_text(counts)}" for name, counts in _left.items())
    if _taken:
        return f"torch.distributed on rank 0, by slimpi: {_text(_taken)}{left and '; '}{left}"
    if hooked:
        return None
    return ("the program made no DistributedDataParallel model, and no sum that slimpi takes" +
            (f"; {left}" if left else ""))


def advice():
    """What was seen without the backend, and what to do."""
    made = _text(_calls)
    if any("scatter" in name for name in _calls):
        return (f"; rank 0 called {made}, as FSDP does, which slimpi takes on CPUs with PyTorch "
                f"{OLDEST[0]}.{OLDEST[1]} and later: wrap the model in DistributedDataParallel "
                "where it fits into each rank's memory, or sum gradients by slimpi.allreduce")
    if made:
        return (f"; rank 0 called {made}: wrap the model in DistributedDataParallel, or sum "
                "gradients by slimpi.allreduce in place of torch.distributed")
    return ": wrap the model in one, or sum gradients by slimpi.allreduce"
