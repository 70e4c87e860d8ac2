# SPDX-License-Identifier: BSD-3-Clause
# Uses torch.distributed in ways that slimpi must bear, one case after the other, or only the cases
# that are named. Each rank prints a line for each case: its name, the rank, and ok, what was wrong,
# or why this PyTorch cannot run it. The program asks for gloo, or, by a word, for slimpi
# (explicit), for gloo with options (options), or for NCCL and a GPU (cuda). The word kinds chooses
# the cases that check which sums are compressed.
import atexit
import datetime
import functools
import gc
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch import nn

import kinds
from kinds import LONG, Missing

if "explicit" in sys.argv or "kinds" in sys.argv:
    import slimpi.torch  # registers the backend

def begin():
    if "cuda" in sys.argv:
        dist.init_process_group("nccl")
    elif "options" in sys.argv:
        dist.init_process_group("gloo", pg_options=dist.ProcessGroupGloo._Options())
    else:
        dist.init_process_group("slimpi" if "explicit" in sys.argv else "gloo")


def at_exit():
    """An exit handler from before init_process_group makes a sum."""
    tensor = mine(LONG)
    dist.all_reduce(tensor)
    check(tensor, total)
    sys.stdout.write(f"at_exit {rank} ok\n")
    sys.stdout.flush()


if not {"late", "kinds"}.intersection(sys.argv):
    atexit.register(at_exit)
torch.set_num_threads(1)
if "cuda" in sys.argv:
    torch.set_default_device("cuda")
begin()
rank, ranks = kinds.rank, kinds.ranks = dist.get_rank(), dist.get_world_size()
total = ranks * (ranks + 1) // 2  # of the values rank + 1


def mine(*shape, dtype=torch.float32):
    return torch.full(shape, rank + 1, dtype=dtype)


def check(tensor, value):
    assert (tensor == value).all(), f"{tensor.flatten()[:3].tolist()}..., not {value}"


def by_name(name):
    if not hasattr(dist, name):
        raise Missing(name)
    return getattr(dist, name)


def all_reduce():
    for tensor, factor in ((mine(LONG), 1), (mine(3), 1), (mine(LONG, dtype=torch.int64), 1),
                           (mine(LONG, dtype=torch.float16), 1), (mine(0), 1)):
        dist.all_reduce(tensor)
        check(tensor, total)
    kinds = mine(LONG)
    dist.all_reduce(kinds, op=dist.ReduceOp.MAX)
    check(kinds, ranks)
    parameter = nn.Parameter(mine(LONG))
    with torch.no_grad():
        dist.all_reduce(parameter)
    check(parameter, total)


def average():
    for length in (LONG, 3):
        for kind in (torch.float32, torch.float16, torch.bfloat16):
            tensor = mine(length, dtype=kind)
            try:
                dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
            except (RuntimeError, ValueError) as error:
                if "options" in sys.argv and "AVG" in str(error):
                    continue  # gloo has none
                raise
            check(tensor, total / ranks)
    smallest = torch.full((LONG,), 2.0 ** -24, dtype=torch.float16)
    if "options" not in sys.argv:
        dist.all_reduce(smallest, op=dist.ReduceOp.AVG)
    check(smallest, 2.0 ** -24)


def layouts():
    """The sum is that of the values, whatever the order in memory."""
    tensor = (torch.arange(LONG).view(200, -1) * (rank + 1)).float().t()
    wanted = total * torch.arange(LONG).view(200, -1).t()
    dist.all_reduce(tensor if rank == 0 else tensor.clone(memory_format=torch.contiguous_format))
    if rank == 0:
        check(tensor - wanted, 0)


def subclasses():
    """The result of a functional sum is a tensor of a class of its own."""
    try:
        from torch.distributed import _functional_collectives as functional
        tensor = functional.all_reduce(mine(LONG), "sum", dist.group.WORLD)
    except (ImportError, RuntimeError) as error:
        raise Missing(str(error)[:40]) from error
    dist.all_reduce(tensor)
    check(tensor, ranks * total)


def asynchronous():
    tensors = [mine(LONG) for _ in range(5)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    futures = [work.get_future().then(lambda future: future.value()[0] * 2) for work in works[:4]]
    for future in reversed(futures):
        check(future.wait(), 2 * total)
    works[4].wait(datetime.timedelta(seconds=60))
    assert works[4].is_completed() and works[4].is_success()
    check(tensors[4], total)


def coalesced():
    by_name("_coalescing_manager")
    tensors = [mine(LONG // 3), mine(LONG, 2), mine(1)]
    dist.all_reduce_coalesced(tensors)
    if "explicit" in sys.argv:  # no tensors
        dist.group.WORLD.collectives.take("all_reduce_coalesced", [], [])
    for tensor in tensors:
        check(tensor, total)


def reduce_scatter():
    function = by_name("reduce_scatter_tensor")
    values = torch.arange(ranks * LONG, dtype=torch.float32).view(ranks, -1)
    for length in (LONG, 3):
        for operation, factor in ((dist.ReduceOp.SUM, total), (dist.ReduceOp.AVG, total / ranks)):
            if "options" in sys.argv and length == 3 and factor != total:
                continue  # gloo of PyTorch 2.4 sums
            whole = values[:, :length].contiguous()
            output = torch.empty(length)
            try:
                function(output, (rank + 1) * whole.flatten(), op=operation)
            except RuntimeError as error:
                if length == 3 and ("does not support" in str(error) or "AVG" in str(error)):
                    raise Missing("reduce_scatter of gloo") from error
                raise
            check(output / factor - whole[rank], 0)
    gaps = torch.full((2 * ranks * LONG,), -1.0)
    gaps[::2] = rank + 1
    output = torch.empty(LONG)
    try:
        function(output, gaps[::2])
    except (RuntimeError, ValueError) as error:
        if "contiguous" not in str(error):
            raise
    else:
        check(output, total)
    inputs = [mine(LONG) * (other + 1) for other in range(ranks)]
    output = inputs[rank]  # in place
    dist.reduce_scatter(output, inputs)
    check(output, total * (rank + 1))
    uneven = [mine(LONG + other) for other in range(ranks)]
    output = torch.empty(LONG + rank)
    try:
        dist.reduce_scatter(output, uneven)
    except (RuntimeError, ValueError) as error:
        raise Missing(f"blocks of other lengths: {str(error)[:40]}") from error
    check(output, total)


def reduce_scatters_coalesced():
    manager = by_name("_coalescing_manager")
    inputs = [mine(ranks * LONG) * (1 + torch.arange(ranks).repeat_interleave(LONG)),
              mine(ranks * 3)]
    outputs = [torch.empty(LONG), torch.empty(3)]
    try:
        with manager():
            for output, whole in zip(outputs, inputs):
                dist.reduce_scatter_tensor(output, whole)
    except (AttributeError, TypeError, NotImplementedError) as error:
        raise Missing(str(error)[:40]) from error
    check(outputs[0], total * (rank + 1))
    check(outputs[1], total)


def methods():
    """The methods of the process group have the arguments of PyTorch's."""
    group, op = dist.group.WORLD, dist.ReduceOp.SUM
    minute = datetime.timedelta(seconds=60)
    for length in (LONG, 3):
        for more in ((), (op,), (op, minute)):
            inputs = [mine(length) for _ in range(ranks)]
            output, tensor = mine(length), mine(length)
            group.reduce_scatter(output, inputs, *more).wait()
            check(output, total)
            group.allreduce(tensor, *more).wait()
            check(tensor, total)
        if "options" not in sys.argv:  # gloo has no mean
            group.reduce_scatter(output, [mine(length) for _ in range(ranks)],
                                 dist.ReduceOp.AVG).wait()
            check(output, total / ranks)
        output, tensors = mine(length), [mine(length), mine(1)]
        group.reduce_scatter([output], [[mine(length) for _ in range(ranks)]]).wait()
        check(output, total)
        group.allreduce_coalesced(tensors).wait()
        for tensor in tensors:
            check(tensor, total)


def refused():
    """What the backend refuses is an error of slimpi's groups, too."""
    function = by_name("reduce_scatter_tensor")
    manager = by_name("_coalescing_manager")
    short, whole = torch.empty(LONG), mine(ranks * LONG)

    def coalesced(*outputs):
        with manager():
            for output in outputs:
                function(output, whole)

    for what, call in {
            "an input that is longer by one": lambda: function(short, mine(ranks * LONG + 1)),
            "an input that is longer": lambda: function(short, mine(ranks * LONG + ranks)),
            "an output that is shorter": lambda: function(short[1:], whole),
            "a shorter output, averaged": lambda: function(short[1:], whole, op=dist.ReduceOp.AVG),
            "an output of bfloat16": lambda: function(short.bfloat16(), whole),
            "an output of doubles": lambda: function(short.double(), whole),
            "an input of bfloat16": lambda: function(short, whole.bfloat16()),
            "a sparse output": lambda: function(mine(LONG).to_sparse(), whole),
            "blocks for half of the ranks": lambda: dist.reduce_scatter(
                mine(2 * LONG), [mine(2 * LONG)] * (ranks // 2)),
            "blocks for too many ranks": lambda: dist.reduce_scatter(short, [short] * (ranks + 1)),
            "a longer output": lambda: dist.reduce_scatter(mine(LONG + 1), [short] * ranks),
            "outputs whose sum is right": lambda: coalesced(mine(LONG + 1), short[1:]),
            "a type of several": lambda: coalesced(short, short.bfloat16()),
            "several types": lambda: dist.all_reduce_coalesced([mine(LONG), mine(LONG).bfloat16()]),
    }.items():
        try:
            call()
        except (RuntimeError, ValueError, AttributeError, TypeError):
            continue
        raise AssertionError(f"taken: {what}")
    several = [mine(LONG), 10 * mine(LONG)]  # each becomes the sum of all
    dist.group.WORLD.allreduce(several).wait()
    for tensor in several:
        check(tensor, 11 * total)


def patient():
    """A timeout of wait() is an error, and the sum goes on."""
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        store.wait([f"patient {other}" for other in range(1, ranks)])
    tensor = mine(LONG)
    work = dist.all_reduce(tensor, async_op=True)
    if rank != 0:
        try:
            work.wait(datetime.timedelta(milliseconds=50))
        except RuntimeError as error:
            assert "has not ended within 0.05 s" in str(error), error
        else:
            raise AssertionError("no error")
        store.set(f"patient {rank}", "")
    assert work.wait()
    check(tensor, total)


def threads():
    return sum(thread.name == "slimpi" for thread in threading.enumerate())


def groups():
    """Groups of the same ranks, in other orders on other ranks; and of some ranks. No thread is
    left of them."""
    before = threads()
    first, second = dist.new_group(), dist.new_group()
    tensors = [mine(LONG), 10 * mine(LONG)]
    pairs = list(zip(tensors, (first, second)))
    works = [dist.all_reduce(tensor, group=group, async_op=True)
             for tensor, group in (pairs if rank == 0 else reversed(pairs))]
    for work in works:
        work.wait()
    for tensor, value in zip(tensors, (total, 10 * total)):
        check(tensor, value)
    parts = [dist.new_group(list(range(i, ranks, 2))) for i in range(2)]
    tensor = mine(LONG)
    dist.all_reduce(tensor, group=parts[rank % 2])
    check(tensor, sum(i + 1 for i in range(rank % 2, ranks, 2)))
    dist.barrier()
    for group in (first, second, parts[rank % 2]):
        dist.destroy_process_group(group)
    end = time.monotonic() + 30
    while threads() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threads() == before, f"{threads()} threads, and before {before}"


def split():
    """A part of a group, whose backend the program names or does not name."""
    function = by_name("split_group")
    for named in {}, {"backend": dist.get_backend()}:
        tensor = mine(LONG)
        try:
            group = function(split_ranks=[list(range(ranks))], **named)
        except (RuntimeError, TypeError) as error:
            if "support splitting" in str(error) or "argument 'backend'" in str(error):
                raise Missing(str(error)[:40]) from error
            raise
        dist.all_reduce(tensor, group=group)
        check(tensor, total)
        dist.destroy_process_group(group)


def model():
    """DistributedDataParallel without a hook of slimpi's: its sums are those of the backend, here
    with each ended before C++ has its Work."""
    if "explicit" in sys.argv:
        from slimpi._collectives import Collectives
        submit = Collectives.submit

        def ended(self, *arguments):
            work = submit(self, *arguments)
            self._worker.do(lambda: None)  # the thread has let go of it, too
            return work

        Collectives.submit = ended
    torch.manual_seed(1)
    network = nn.Linear(200, 300)
    model = nn.parallel.DistributedDataParallel(network)
    model(mine(7, 200)).sum().backward()
    check(network.weight.grad, 7 * total / ranks)


def compiled():
    """PyTorch's C++ calls a group's functions in the middle of a compiled program. In the second
    forward pass a model makes its buckets anew."""
    torch.manual_seed(1)
    network = nn.Linear(200, 300)
    model = torch.compile(nn.parallel.DistributedDataParallel(network), backend="eager")
    for step in range(1, 3):
        model(mine(7, 200)).sum().backward()
        check(network.weight.grad, step * 7 * total / ranks)

    @functools.partial(torch.compile, backend="eager")
    def twice(tensor):
        dist.all_reduce(tensor)
        return 2 * tensor

    check(twice(mine(LONG)), 2 * total)


def again():
    dist.destroy_process_group()
    gc.collect()  # PyTorch's store ends with what refers to it
    begin()
    tensor = mine(LONG)
    dist.all_reduce(tensor)
    check(tensor, total)


def late():
    """A rank ends and does not make a sum: an error on the others, in the time of the group."""
    group = dist.new_group(timeout=datetime.timedelta(seconds=4))
    if rank == 0:
        return
    work = dist.all_reduce(mine(LONG), group=group, async_op=True)
    for wait in (work.wait, work.get_future().wait):
        try:
            wait()
        except RuntimeError as error:
            assert "rank 0 takes no part" in str(error) or "MPI" in str(error), error
        else:
            raise AssertionError("no error")


cases = [all_reduce, average, layouts, asynchronous, coalesced, reduce_scatter,
         reduce_scatters_coalesced, methods, refused, patient, groups, split, again, model,
         subclasses, compiled]
if "late" in sys.argv:
    cases = [late]
if "kinds" in sys.argv:
    cases = kinds.cases
for case in cases:
    result = "ok"
    try:
        case()
    except Missing as error:
        result = f"ok: missing {error}"
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    sys.stdout.write(f"{case.__name__} {rank} {result}\n")
    sys.stdout.flush()
