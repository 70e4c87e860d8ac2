# SPDX-License-Identifier: BSD-3-Clause
"""Which parameter of a model is which, from one iteration to the next and after a checkpoint."""
import hashlib
import weakref


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
