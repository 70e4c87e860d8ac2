# SPDX-License-Identifier: BSD-3-Clause
# Cases of backend.py that look which sums are compressed. Their errors tell: an exact sum has none
# but the rounding of its type.
import contextlib
import gc
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch import nn

LONG = 40000  # floats, more than SLIMPI_MIN_SIZE

rank = ranks = 0  # set when torch.distributed has begun


class Missing(Exception):
    """This PyTorch has no such thing."""


def error_of(tensor, call):
    """The relative error of a sum in place."""
    parts = [torch.empty_like(tensor).contiguous() for _ in range(ranks)]
    dist.all_gather(parts, tensor.clone().contiguous())
    wanted = sum(part.double() for part in parts)
    call(tensor)
    return ((tensor.double() - wanted).norm() / wanted.norm()).item()


def exact(what, tensor, call=dist.all_reduce):
    error = error_of(tensor, call)
    assert error < torch.finfo(tensor.dtype).eps / 2, f"{what}: error {error}"


def compressed(what, tensor, call=dist.all_reduce):
    error = error_of(tensor, call)
    assert torch.finfo(tensor.dtype).eps / 2 < error < 0.9, f"{what}: error {error}"


def random(count=LONG, kind=torch.float32):
    return torch.randn(count, generator=torch.Generator().manual_seed(rank + 1)).to(kind)


def parameter(gradient, optimizer=torch.optim.SGD):
    """A parameter of an optimizer, and that."""
    one = nn.Parameter(torch.zeros_like(gradient))
    one.grad = gradient
    return one, optimizer([one], 0.1)


def metrics():
    """Validation accuracy, from a confusion matrix of 200 classes."""
    generator = torch.Generator().manual_seed(rank)
    true = torch.randint(0, 200, (20000,), generator=generator)
    guess = torch.where(torch.rand(20000, generator=generator) < 0.8, true,
                        torch.randint(0, 200, (20000,), generator=generator))
    counts = torch.zeros(200, 200)
    counts.index_put_((true, guess), torch.ones(20000), accumulate=True)
    exact("a confusion matrix", counts)
    assert counts.sum() == 20000 * ranks, counts.sum()
    for kind in (torch.float16, torch.bfloat16):
        exact(kind, random(kind=kind))
    exact("blocks", random(), lambda whole: whole[:].copy_(scattered(whole)))
    # The first fails after MPI has made the sum, the second in gloo.
    for values, operation in ((torch.ones(1).expand(LONG), dist.ReduceOp.SUM),
                              (torch.ones(LONG, dtype=torch.int64), dist.ReduceOp.AVG)):
        with contextlib.suppress(RuntimeError, ValueError):
            dist.all_reduce(values, op=operation)
        exact("a sum after an error", random())


def scattered(whole):
    """The sum by a reduce-scatter and an all-gather."""
    parts = [torch.empty(len(whole) // ranks) for _ in range(ranks)]
    dist.reduce_scatter(parts[rank], list(whole.clone().chunk(ranks)))
    dist.all_gather(parts, parts[rank].clone())
    return torch.cat(parts)


def gradients():
    import slimpi.torch
    for kind in (torch.float32, torch.float16, torch.bfloat16):
        one, optimizer = parameter(random(2 * LONG, kind))
        compressed(f"a gradient, {kind}", one.grad)
        one.grad = random(2 * LONG, kind)  # as zero_grad and a backward pass do
        compressed("a new gradient", one.grad)
        compressed("a part of a gradient", one.grad[LONG:])
        optimizer.zero_grad()
        exact("where a gradient was", random(kind=kind))
    flat = random()
    one, other = (nn.Parameter(torch.zeros(LONG // 2)) for _ in range(2))
    one.grad, other.grad = flat.chunk(2)
    optimizers = torch.optim.SGD([one], 0.1), torch.optim.Adam([other])
    compressed("gradients in one buffer", flat)
    del optimizers
    flat = random()
    one, optimizer = parameter(flat[1:])
    exact("a count before gradients", flat)
    flat = random()
    optimizers = [parameter(flat[first:LONG // 4 * 3])[1] for first in (0, LONG // 4)]
    exact("values behind gradients that overlap", flat)
    del optimizers
    flat = random(2 * LONG)
    one, optimizer = parameter(flat.view(-1, 2)[:, 0])
    exact("values between those of a gradient", flat[:-1])
    compressed("a gradient that has values of others between its own", one.grad)
    exact("a copy of a gradient", one.grad.clone())
    assert slimpi.torch._functions._kinds.kind() is None
    look, calls = slimpi.torch._gradients._look, []
    slimpi.torch._gradients._look = lambda: calls.append(look())
    one, optimizer = parameter(random())
    for _ in range(3):
        exact("beside a new gradient", random())
    assert not calls, "a sum of another tensor looks for the memory of all gradients"
    compressed("a gradient in other memory", one.grad)
    one.grad.data = random()
    compressed("a gradient whose memory has changed", one.grad)
    slimpi.torch._gradients._look = look


def no_gradient_on_a_rank():
    """Such as that of a layer that one rank's samples do not use. The ranks vote by floats,
    whatever type the program makes the default."""
    for default in torch.float64, torch.bfloat16, torch.float32:
        torch.set_default_dtype(default)
        one, optimizer = parameter(random())
        exact(f"a gradient on some ranks, {default}",
              one.grad if rank == 0 else torch.zeros_like(one.grad))
        compressed(f"a gradient on all ranks, {default}", one.grad)


def threads():
    """A backward pass sets the gradients of one thread without the GIL, so no other reads them."""
    one, optimizer = parameter(random())
    others = []

    def train():
        others.extend(parameter(random()))
        compressed("a gradient of this thread", others[0].grad)

    trains = threading.Thread(target=train)
    trains.start()
    trains.join()
    exact("a gradient of another thread", others[0].grad)
    compressed("a gradient beside those of another thread", one.grad)
    others[1].zero_grad()
    others[0].grad = random()
    compressed("a gradient of an optimizer that this thread uses now", others[0].grad)
    between_threads()
    groups_of_threads()


def groups_of_threads():
    """Two threads make groups at once, which have different numbers."""
    from slimpi import _collectives
    gather, offered, groups = _collectives.gather, threading.Barrier(2), {}

    def gather_late(*arguments):
        offered.wait(60)
        return gather(*arguments)

    def make(name):
        store = dist.FileStore(f"store of {name}", ranks)  # one for all would let a thread wait
        groups[name] = _collectives.Collectives(rank, ranks, lambda: 60, "gloo", store,
                                                lambda: name)

    _collectives.gather = gather_late
    makes = [threading.Thread(target=make, args=(name,)) for name in ("one", "other")]
    for thread in makes:
        thread.start()
    for thread in makes:
        thread.join()
    _collectives.gather = gather
    assert len({group.number for group in groups.values()}) == 2, "two groups have one number"
    for group in groups.values():
        group.free()


def between_threads():
    """A thread sums gradients, and waits for the other rank, while this one makes a sum."""
    import slimpi.torch
    seen, known = sys.modules["slimpi._seen"], slimpi.torch._functions._kinds
    count = lambda: seen._calls.get("all_reduce", (0,))[0]
    group, begun, ended = dist.new_group(), threading.Event(), threading.Event()

    def sum_gradients():
        with known.doing(known.GRADIENTS):
            begun.set()
            if rank:
                ended.wait(60)
            compressed_here = random()
            dist.all_reduce(compressed_here, group=group)
            sums.append(compressed_here)

    sums, before = [], count()
    other = threading.Thread(target=sum_gradients)
    other.start()
    begun.wait(60)
    while rank == 0 and before and count() == before:
        time.sleep(0.01)
    exact("a sum beside a function for gradients in another thread", random())
    ended.set()
    other.join()
    wanted = random()
    exact("the same sum", wanted)
    assert not torch.equal(*sums, wanted), "the sum of the other thread is exact"
    assert before == 0 or count() == before + 3, f"{count() - before} of 3 sums were counted"


def by_choice():
    import slimpi.torch
    copy = random()
    assert slimpi.torch.compress(copy) is copy
    compressed("a tensor that was named", copy)
    del copy
    exact("where a named tensor was", random())
    group = slimpi.torch.compress(dist.new_group())
    compressed("in a group that was named", random(), lambda t: dist.all_reduce(t, group=group))
    exact("in another group", random())
    group = dist.new_group()
    try:
        if rank == 0:
            slimpi.torch.compress(group)
        else:
            dist.all_reduce(torch.ones(LONG), group=group)
    except RuntimeError as error:
        assert "was called on 1 of" in str(error), error
    else:
        raise AssertionError("a group that one rank names is no error")


def by_rules():
    for name, check in (("whole", compressed), ("exempt", exact), ("other", exact)):
        group = dist.new_group(group_desc=name)
        check(name, random(), lambda t, group=group: dist.all_reduce(t, group=group))
    one, optimizer = parameter(random())
    group = dist.new_group(group_desc="exempt")
    exact("a gradient in an exempt group", one.grad, lambda t: dist.all_reduce(t, group=group))
    compressed("a gradient", one.grad)


def activations():
    """Of tensor parallelism, and functional collectives."""
    try:
        from torch.distributed import _functional_collectives as functional
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import RowwiseParallel, parallelize_module
        mesh = init_device_mesh("cpu", (ranks,))
    except (ImportError, RuntimeError) as error:
        raise Missing(str(error)[:40]) from error
    exact("a functional sum", random(), lambda t: t.copy_(
        functional.all_reduce(t, "sum", dist.group.WORLD)))
    torch.manual_seed(1)
    layer, data = nn.Linear(64 * ranks, 600), torch.randn(70, 64 * ranks)
    wanted = layer(data)
    parallelize_module(layer, mesh, RowwiseParallel())
    error = (layer(data.chunk(ranks, 1)[rank]) - wanted).norm() / wanted.norm()
    assert error < 1e-6, f"an activation: error {error}"


def functional_sums():
    """Several are on their way before C++ code waits for one; gloo's own have no mean."""
    for operation, wanted in (("sum", ranks * (ranks + 1) / 2), ("avg", (ranks + 1) / 2)):
        if operation == "avg" and "options" in sys.argv:
            continue
        try:
            from torch.distributed import _functional_collectives as functional
            results = [functional.all_reduce(torch.full((count,), rank + 1.0), operation,
                                             dist.group.WORLD) for count in (LONG, 3, LONG, 3)]
        except (ImportError, RuntimeError, ValueError) as error:
            raise Missing(str(error)[:40]) from error
        for result in reversed(results):
            assert (result == wanted).all(), f"{operation}: {result[0]}, not {wanted}"


def names():
    """The program finds the name of the backend that it asked for."""
    wanted, other = ("slimpi", "gloo") if "explicit" in sys.argv else ("gloo", "slimpi")
    for name in dist.get_backend(), dist.get_backend_config():
        assert wanted in name and other not in name, name


def buckets():
    """Of DistributedDataParallel, by a hook or by its own sums."""
    network = nn.Linear(200, 300)
    model = nn.parallel.DistributedDataParallel(network)
    data = random(7 * 200).view(7, 200)
    for _ in range(2):  # in the second, buckets are others
        network.zero_grad()
        model(data).square().sum().backward()
        with model.no_sync():
            wanted = torch.autograd.grad(network(data).square().sum(), network.weight)[0]
        parts = [torch.empty_like(wanted) for _ in range(ranks)]
        dist.all_gather(parts, wanted)
        wanted = sum(parts) / ranks
        error = ((network.weight.grad - wanted).norm() / wanted.norm()).item()
        assert 1e-6 < error < 0.9, f"error {error}"


def hooks():
    """A model with a hook of the program's: its group's sums are exact until the next model."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    if "explicit" in sys.argv:
        raise Missing("a change of models by slimpi-run")
    model = nn.parallel.DistributedDataParallel(nn.Linear(10, 10))
    model.register_comm_hook(None, default_hooks.allreduce_hook)
    one, optimizer = parameter(random())
    exact("a gradient beside the hook", one.grad)
    del model
    gc.collect()
    exact("a gradient after the hook's model", one.grad)
    model = nn.parallel.DistributedDataParallel(nn.Linear(10, 10))
    one, optimizer = parameter(random())
    compressed("a gradient beside the next model", one.grad)


cases = [metrics, gradients, no_gradient_on_a_rank, threads, by_choice, by_rules, activations,
         functional_sums, names, buckets, hooks]
