# SPDX-License-Identifier: BSD-3-Clause
"""Registers the backend "slimpi" with torch.distributed as soon as the program imports that module
of PyTorch."""
from . import _functions, _gradients, _kinds, _late
from ._late import OLDEST
from ._mpi import Error


def is_old():
    import torch
    return tuple(map(int, torch.__version__.split(".")[:2])) < OLDEST


def missing(module):
    """Returns why this version of PyTorch cannot have the backend; None if it can."""
    import torch
    if is_old():
        return (f"the backend slimpi needs PyTorch {OLDEST[0]}.{OLDEST[1]} or later, and this is "
                f"{torch.__version__}: slimpi.torch.register sums the gradients of a "
                "DistributedDataParallel model, with gloo as the backend")
    if not module.is_gloo_available():
        return "the backend slimpi needs gloo, and this PyTorch was built without it"
    return None


def _register(module):
    def make(store, rank, size, timeout):
        reason = missing(module)
        if reason:
            raise Error(reason)
        from ._backend import Group
        return Group(store, rank, size, timeout)

    try:
        module.Backend.register_backend("slimpi", make, devices=["cpu"])
    except TypeError:  # an old PyTorch, whose function has no `devices`
        module.Backend.register_backend("slimpi", make)


def _stay_uncompiled(module):
    """Keeps torch.compile from tracing this package's functions, which PyTorch's C++ code calls in
    the middle of a compiled program, because a process group in Python cannot be traced."""
    module.add(__package__)


_late.after("torch.distributed.distributed_c10d", _register)
_gradients.watch()
_kinds.watch(_functions.collectives_of)
_late.after("torch._dynamo.trace_rules", _stay_uncompiled)
