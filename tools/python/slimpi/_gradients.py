# SPDX-License-Identifier: BSD-3-Clause
"""Which sums of torch.distributed are of gradients: those of PyTorch's and DeepSpeed's own
functions for that, and those of tensors that are gradients."""
import functools
import threading
import weakref

from . import _late

# By the module that calls them, so that it does not matter when slimpi is imported.
_FUNCTIONS = {
    "torch.distributed.fsdp._runtime_utils": ("_reduce_grad", "_reduce_grad_no_shard"),
    "torch.distributed.fsdp._fully_shard._fsdp_param_group": ("foreach_reduce",),
    "torch.distributed._composable.fsdp._fsdp_param_group": ("foreach_reduce",),  # until 2.5
    "torch.distributed.algorithms.ddp_comm_hooks.default_hooks": ("_allreduce_fut",),
    "torch.nn.parallel.distributed": ("DistributedDataParallel._delayed_all_reduce_hook",),
    "deepspeed.runtime.engine": ("DeepSpeedEngine.allreduce_bucket",),
    "deepspeed.runtime.zero.stage_1_and_2": (
        "DeepSpeedZeroOptimizer.allreduce_bucket",
        "DeepSpeedZeroOptimizer.gradient_reduction_w_predivide"),
    "deepspeed.runtime.zero.stage3": (
        "DeepSpeedZeroOptimizer_Stage3.allreduce_bucket",
        "DeepSpeedZeroOptimizer_Stage3._DeepSpeedZeroOptimizer_Stage3__avg_scatter_grads",
        "DeepSpeedZeroOptimizer_Stage3._DeepSpeedZeroOptimizer_Stage3__avg_scatter_contiguous_grads"
    ),
    "deepspeed.runtime.zero.partition_parameters": ("Init._reduce_scatter_gradient",),
}
_here = threading.local()  # depth: of such functions in this thread
_optimizers = weakref.WeakSet()
_marked = {}     # by id(): weak references to tensors of slimpi.torch.compress
_by_storage = {}  # by a storage's address: weak references to what has, or has had, gradients there


def is_reducing():
    """Whether this thread is in a function that sums gradients."""
    return getattr(_here, "depth", 0) > 0


def reducing(function):
    @functools.wraps(function)
    def call(*arguments, **keywords):
        _here.depth = getattr(_here, "depth", 0) + 1
        try:
            return function(*arguments, **keywords)
        finally:
            _here.depth -= 1

    return call


def mark(tensor):
    """From now on the tensor counts as a gradient."""
    key = id(tensor)
    _marked[key] = weakref.ref(tensor, lambda _: _marked.pop(key, None))


def _place(tensor):
    """(address of the storage, first byte, byte behind the last) of a tensor; None where it has no
    such place."""
    tensor = getattr(tensor, "_local_tensor", tensor)  # of a DTensor
    try:
        extent = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride())) + 1
        first = tensor.data_ptr()
        return (tensor.untyped_storage().data_ptr(), first,
                first + extent * tensor.element_size() * (tensor.numel() != 0))
    except (RuntimeError, AttributeError):  # sparse, or without memory
        return None


def _gradient(holder):
    """The gradient of a parameter, or the tensor that was marked."""
    return holder if id(holder) in _marked else getattr(holder, "grad", None)


def _look():
    global _by_storage
    found = {}
    holders = [parameter for optimizer in list(_optimizers)
               for group in getattr(optimizer, "param_groups", ()) for parameter in group["params"]]
    for holder in holders + [reference() for reference in list(_marked.values())]:
        gradient = None if holder is None else _gradient(holder)
        place = None if gradient is None else _place(gradient)
        if place is not None:
            found.setdefault(place[0], []).append(weakref.ref(holder))
    _by_storage = found


def _is_covered(place):
    storage, first, last = place
    gradients = {_place(gradient) for gradient in (
        _gradient(holder) for holder in (reference() for reference in _by_storage.get(storage, ()))
        if holder is not None) if gradient is not None}
    covered = sum(max(0, min(last, other[2]) - max(first, other[1]))
                  for other in gradients if other is not None and other[0] == storage)
    return covered >= last - first


def are_gradients(tensors):
    """Whether each of the tensors is the gradient of a parameter of an optimizer, or marked, or
    consists of parts of such. Ranks may differ in that."""
    for tensor in tensors:
        place = _place(tensor)
        if place is None:
            return False
        if not _is_covered(place):
            _look()  # gradients get other memory in each step
            if not _is_covered(place):
                return False
    return True


def _change_functions(names, module):
    for name in names:
        owner, _, function = name.rpartition(".")
        owner = getattr(module, owner, None) if owner else module
        if hasattr(owner, function):  # versions have others
            setattr(owner, function, reducing(getattr(owner, function)))


def _change_optimizer(module):
    """Whatever makes an optimizer: a constructor, pickle or copy.deepcopy."""
    def known(function):
        @functools.wraps(function)
        def call(self, *arguments, **keywords):
            function(self, *arguments, **keywords)
            _optimizers.add(self)

        return call

    for name in ("__init__", "__setstate__"):
        setattr(module.Optimizer, name, known(getattr(module.Optimizer, name)))


def _change_reducer(module):
    """DistributedDataParallel's own sums are made by C++, which gets the group as one of
    gradients."""
    make = module.dist.Reducer

    @functools.wraps(make, updated=())
    def reducer(*arguments, **keywords):
        return make(*(getattr(one, "of_gradients", one) for one in arguments), **keywords)

    module.dist.Reducer = reducer


def watch():
    for name, functions in _FUNCTIONS.items():
        _late.after(name, functools.partial(_change_functions, functions))
    _late.after("torch.optim.optimizer", _change_optimizer)
    _late.after("torch.nn.parallel.distributed", _change_reducer)
