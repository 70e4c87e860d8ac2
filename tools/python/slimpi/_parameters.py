# SPDX-License-Identifier: BSD-3-Clause
"""Names and shapes of a model's parameters. A parameter keeps its name from one iteration to the
next, and after a checkpoint."""
import hashlib
import re
import weakref

from ._mpi import Error


class Parameters:
    """The names of parameters. A tensor is identified by its id() and not by the address of its
    data, because programs move the data (p.data = ...), and then another parameter may get its
    memory. Tensors are held weakly, but not in a WeakKeyDictionary, because == compares their
    elements."""

    def __init__(self, model=None):
        self._names = {}  # by id(): (weak reference, name)
        if model is not None:
            for name, parameter in model.module.named_parameters():
                self.name(parameter, name)

    def name(self, parameter, otherwise=None):
        """Returns the name of a parameter; a parameter that has none gets the name `otherwise`."""
        key = id(parameter)
        if key not in self._names:
            self._names[key] = weakref.ref(parameter, lambda _: self._names.pop(key)), otherwise
        return self._names[key][1]


def bucket_name(index, layout):
    """Returns a name for a bucket. `layout` has the names of its parameters, so that a bucket of
    other parameters gets another name."""
    digest = hashlib.sha256(repr(layout).encode()).hexdigest()[:16]
    return f"bucket {index} ({layout[0]} to {layout[-1]}), {digest}"


def matrices_of(parameters):
    """Returns the (rows, columns), in floats, of each parameter that is not empty. A vector is a
    matrix of one row, and a complex number is two floats of a row."""
    matrices = []
    for parameter in parameters:
        floats = parameter.numel() * (2 if parameter.is_complex() else 1)
        if floats != 0:
            rows = parameter.shape[0] if parameter.dim() > 1 else 1
            matrices.append((rows, floats // rows))
    return matrices


def bytes_of(text):
    """Returns the number of bytes that a size in slimpi's options stands for, such as 65536, 64K or
    64KiB."""
    digits, unit = re.match(r"\s*(\d+)([kmg]?)", text.lower()).groups()
    return int(digits) << 10 * " kmg".index(unit or " ")


def check_model(model):
    if getattr(model, "_use_python_reducer", False):
        raise Error('torch._dynamo.config.optimize_ddp is "python_reducer", which sums without '
                    'buckets: set it to "ddp_optimizer" before DistributedDataParallel is made')
    if getattr(model, "skip_all_reduce_unused_params", False):
        raise Error("DistributedDataParallel does not show its hook all buckets with "
                    "skip_all_reduce_unused_params: leave it False")
    if getattr(model, "mixed_precision", None) is not None:
        raise Error("DistributedDataParallel has a hook of its own with mixed_precision, and a "
                    "model has one hook: use torch.autocast in place of mixed_precision")
