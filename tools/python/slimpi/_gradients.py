# SPDX-License-Identifier: BSD-3-Clause
"""Finds out which tensors are gradients, for sums that the program itself asks for. _kinds.py
recognizes the sums of PyTorch and DeepSpeed without looking at tensors."""
import functools
import itertools
import math
import threading
import weakref

from . import _late

# By id(): a weak reference to each optimizer, and the thread that uses it.
_optimizers = {}
_marked = {}  # by id(): weak references to tensors that slimpi.torch.compress() got
# Attributes of this thread. by_storage: where it last found gradients: by the address of a storage,
# weak references to the holders of gradients in it. several: whether several threads used
# optimizers at that time.
_here = threading.local()


def mark(tensor):
    """Makes are_gradients() treat the tensor as a gradient from now on."""
    key = id(tensor)
    _marked[key] = weakref.ref(tensor, lambda _: _marked.pop(key, None))


def _local(tensor):
    """Returns a tensor itself, or this rank's part of a DTensor."""
    return getattr(tensor, "_local_tensor", tensor)


def _place(tensor):
    """Returns a tensor's address of storage, its first byte, the byte after its last, and its
    strides if there may be memory of others between its values. Returns None for a sparse tensor
    and for one without memory."""
    tensor = _local(tensor)
    try:
        steps, first = tensor.stride(), tensor.data_ptr()
        extent = sum((n - 1) * step for n, step in zip(tensor.shape, steps)) + 1
        has_gaps = extent > math.prod(n for n, step in zip(tensor.shape, steps) if step)
        return (tensor.untyped_storage().data_ptr(), first,
                first + extent * tensor.element_size() * (tensor.numel() != 0),
                steps if has_gaps else ())
    except (RuntimeError, AttributeError):  # a sparse tensor, or one without memory
        return None


def _gradient(holder):
    """Returns a parameter's gradient. A marked tensor is its own gradient."""
    return holder if id(holder) in _marked else getattr(holder, "grad", None)


def _several():
    """Returns whether several threads use optimizers."""
    return len({thread for _, thread in list(_optimizers.values())}) > 1


def _groups():
    """Yields the parameters of each group of each optimizer, and the marked tensors, each as a
    list. If several threads use optimizers, yields only the parameters of this thread's, because
    the backward pass of another thread, which does not hold the GIL, may be setting gradients at
    the same time."""
    several, mine = _several(), threading.get_ident()
    for reference, thread in list(_optimizers.values()):
        if not several or thread == mine:
            for group in getattr(reference(), "param_groups", ()):
                yield group["params"]
    yield [holder for holder in (reference() for reference in list(_marked.values()))
           if holder is not None]


def _begins_in(storage, last):
    """Returns whether a gradient begins in this memory. Programs have many parameters, and sum many
    tensors that are no gradients, so this does as little as possible for each parameter."""
    import torch
    plain = torch.Tensor
    for holders in _groups():
        for holder in holders:
            gradient = getattr(holder, "grad", None) if id(holder) not in _marked else holder
            if gradient is None:
                continue
            try:
                if type(gradient) is not plain:
                    gradient = _local(gradient)
                if storage <= gradient.data_ptr() < last:
                    return True
            except (RuntimeError, AttributeError):  # sparse, or without memory
                pass
    return False


def _look():
    found = {}
    for holder in itertools.chain.from_iterable(_groups()):
        gradient = _gradient(holder)
        if gradient is not None:
            try:
                storage = _local(gradient).untyped_storage().data_ptr()
            except (RuntimeError, AttributeError):  # sparse, or without memory
                continue
            found.setdefault(storage, []).append(weakref.ref(holder))
    _here.by_storage = found


def _is_covered(place):
    """Returns whether each byte of this memory is a gradient's. Gradients may overlap."""
    storage, first, last, _ = place
    gradients = {_place(gradient) for gradient in (
        _gradient(holder)
        for holder in (reference() for reference in _here.by_storage.get(storage, ()))
        if holder is not None) if gradient is not None}
    if place in gradients:
        return True
    for other, begin, end, gaps in sorted(gradients - {None}):
        if other == storage and not gaps and begin <= first:
            first = max(first, end)
    return first >= last


def are_gradients(tensors):
    """Returns whether the memory of each tensor belongs to gradients of parameters of optimizers or
    to marked tensors. Ranks may get different answers, so they must agree before they use them."""
    several = _several()
    if getattr(_here, "several", None) != several:
        _here.several, _here.by_storage = several, {}
    for tensor in tensors:
        place = _place(tensor)
        if place is None:
            return False
        if not _is_covered(place):  # gradients may have other memory in each step
            if not _begins_in(place[0], place[2]):
                return False
            _look()
            if not _is_covered(place):
                return False
    return True


def _change_optimizer(module):
    """Notes each new optimizer, also one made by pickle or copy.deepcopy, and its thread: the one
    that made it or that last called its zero_grad()."""
    for name in ("__init__", "__setstate__", "zero_grad"):
        @_late.replace(module.Optimizer, name)
        def known(function, self, *arguments, **keywords):
            function(self, *arguments, **keywords)
            key = id(self)
            _optimizers[key] = (weakref.ref(self, lambda _: _optimizers.pop(key, None)),
                                threading.get_ident())


def _change_reducer(module):
    """Replaces the group of the sums that the C++ code of DistributedDataParallel makes by
    group.of_gradients, so that they are known to be of gradients."""
    make = module.dist.Reducer

    @functools.wraps(make, updated=())
    def reducer(*arguments, **keywords):
        return make(*(getattr(one, "of_gradients", one) for one in arguments), **keywords)

    module.dist.Reducer = reducer


def watch():
    _late.after("torch.optim.optimizer", _change_optimizer)
    _late.after("torch.nn.parallel.distributed", _change_reducer)
