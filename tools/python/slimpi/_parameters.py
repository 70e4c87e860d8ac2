# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of a model: which is which, from one iteration to the next and after a checkpoint, and
what slimpi can do with them."""
import functools
import hashlib
import math
import re
import threading
import weakref

from ._mpi import Error

_here = threading.local()  # pieces: of the gradients that fully_shard sums in this thread


class Parameters:
    """Names of parameters. A tensor is known by its identity: programs move its data to other
    addresses (p.data = ...), and memory of one parameter becomes that of another. Tensors are held
    weakly. They cannot be keys of a WeakKeyDictionary, because == compares their elements."""

    def __init__(self, model=None):
        self._names = {}  # by id(): a weak reference and the name
        if model is not None:
            for name, parameter in model.module.named_parameters():
                self.name(parameter, name)

    def name(self, parameter, otherwise=None):
        """The name of a parameter; `otherwise`, from then on, where it has none."""
        key = id(parameter)
        if key not in self._names:
            self._names[key] = weakref.ref(parameter, lambda _: self._names.pop(key)), otherwise
        return self._names[key][1]


def bucket_name(index, layout):
    """The name of a bucket of parameters with the names `layout`. Buckets of other parameters have
    other names."""
    digest = hashlib.sha256(repr(layout).encode()).hexdigest()[:16]
    return f"bucket {index} ({layout[0]} to {layout[-1]}), {digest}"


def matrices_of(parameters):
    """Rows and columns of parameters, in floats, without those that are empty. A vector is one row.
    A complex number is two floats of a row."""
    matrices = []
    for parameter in parameters:
        floats = parameter.numel() * (2 if parameter.is_complex() else 1)
        if floats != 0:
            rows = parameter.shape[0] if parameter.dim() > 1 else 1
            matrices.append((rows, floats // rows))
    return matrices


def watch_pieces(module):
    """Notes what fully_shard sums: a row for each rank, with a piece of each gradient. The module
    is PyTorch's _fsdp_collectives."""
    copy = module.foreach_reduce_scatter_copy_in

    @functools.wraps(copy)
    def copy_in(unsharded_grads, reduce_scatter_input, world_size):
        _here.pieces = [-(-len(gradient) // world_size) * math.prod(gradient.shape[1:])
                        for gradient in unsharded_grads]
        return copy(unsharded_grads, reduce_scatter_input, world_size)

    module.foreach_reduce_scatter_copy_in = copy_in


def pieces_of_row(length):
    """The lengths of the pieces of a row of so many elements that fully_shard sums now in this
    thread; None where it is another sum. Alike on all ranks."""
    pieces = getattr(_here, "pieces", ())
    return pieces if pieces and sum(pieces) == length else None


def bytes_of(text):
    """A size as slimpi's options give it, such as 65536, 64K or 64KiB."""
    digits, unit = re.match(r"\s*(\d+)([kmg]?)", text.lower()).groups()
    return int(digits) << 10 * " kmg".index(unit or " ")


def check_model(model):
    if getattr(model, "_use_python_reducer", False):
        raise Error('torch._dynamo.config.optimize_ddp is "python_reducer", which sums without '
                    'buckets: set it to "ddp_optimizer" before DistributedDataParallel is made')
    if getattr(model, "mixed_precision", None) is not None:
        raise Error("DistributedDataParallel has a hook of its own with mixed_precision, and a "
                    "model has one hook: use torch.autocast in place of mixed_precision")
