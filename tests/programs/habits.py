# SPDX-License-Identifier: BSD-3-Clause
# Uses models and gradients in ways that slimpi.torch must bear, one case after the other.
# Each rank prints a line for each case: its name, the rank, and ok or what was wrong.
import argparse
import copy
import gc
import itertools
import math
import os
import pickle
import sys
import threading
import time
import types

import torch
import torch.distributed as dist
from torch import nn

import slimpi
import slimpi.torch

torch.set_num_threads(1)
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", rank=rank, world_size=ranks, init_method="tcp://{}:{}".format(
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]))


class Bucket:
    """As DDP gives it to a hook. PyTorch 1.13 makes no model with some of these parameters."""

    def __init__(self, parameters, gradients, index=0, last=True):
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        self.buffer, self.parameters = lambda: flat, lambda: parameters
        self.index, self.is_last = lambda: index, lambda: last


def mean_of(state, *buckets):
    """The buckets' sums of one iteration, as lists of gradients. A bucket is (parameters, values).
    """
    futures = [slimpi.torch.hook(state, Bucket(parameters, values, i, i == len(buckets) - 1))
               for i, (parameters, values) in enumerate(buckets)]
    return [[flat.view_as(p) for p, flat in zip(parameters, future.wait().split(
        [p.numel() for p in parameters]))] for (parameters, _), future in zip(buckets, futures)]


def generator(seed):
    return torch.Generator().manual_seed(seed)


def matrix_and_vector(kind, shapes):
    """Powersgd of rank 2 has no error for these: a vector, and a matrix of rank 1."""
    state = slimpi.torch.State(algorithm="powersgd", powersgd_rank=2, start_powerSGD_iter=1,
                               error_feedback=False)
    rows, columns, vector = (torch.randn(*shape, generator=generator(5)).to(kind)
                             for shape in ((64, 1), (1, 48), (48,)))
    if kind.is_complex:
        rows, columns, vector = rows * (1 + 2j), columns * (3 + 1j), vector * (2 - 1j)
    wanted = [torch.zeros(*shape, dtype=kind) for shape in shapes] + [vector, rows @ columns]
    parameters = [nn.Parameter(torch.zeros_like(value)) for value in wanted]
    for _ in range(3):
        share = 2 * (rank + 1) / (ranks + 1)  # 1 on average
        got, = mean_of(state, (parameters, [share * value for value in wanted]))
        for value, found in zip(wanted, got):
            error = (found - value).norm().item()
            assert error <= 1e-5 * value.norm().item(), f"error {error} of {list(value.shape)}"


def complex_parameters():
    matrix_and_vector(torch.complex64, [])


def empty_parameters():
    matrix_and_vector(torch.float32, [(0, 5), (5, 0), (0,)])


def trained(swap, **options):
    """A model, and the State that its gradients were summed with."""
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, 96), nn.Linear(96, 96))
    model = nn.parallel.DistributedDataParallel(network, bucket_cap_mb=0.03)
    state = slimpi.torch.register(model, start_powerSGD_iter=1, **options)
    optimizer = torch.optim.SGD(network.parameters(), 0.05)
    for step in range(6):
        optimizer.zero_grad()
        data = torch.randn(16, 96, generator=generator(10 * step + rank))
        model(data).square().mean().backward()
        optimizer.step()
        if swap:
            for parameter in network.parameters():
                parameter.data = parameter.data.clone()
    return model, state


def values_of(model):
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


def swapped_data():
    options = {"bits": 2, "error_feedback": True}
    (model, state), (other, _) = trained(True, **options), trained(False, **options)
    assert torch.equal(values_of(model), values_of(other)), "other bits than without swaps"
    known = [name for layout in state._layouts.values() for name in layout]
    names = [name for name, _ in model.module.named_parameters()]
    assert sorted(known) == sorted(names), f"the buckets have {known}"
    assert len(state._parameters._names) == len(names), "it knows more than the model's parameters"


def twice():
    first, second = (trained(False, algorithm="powersgd", powersgd_rank=1)[0] for _ in range(2))
    assert torch.equal(values_of(first), values_of(second)), "two trainings with other bits"


def many_models():
    """The thread of a model's State ends when the program drops the model."""
    def threads():
        gc.collect()
        return sum(thread.name == "slimpi" for thread in threading.enumerate())

    trained(False)
    before, end = threads(), time.monotonic() + 30
    for _ in range(3):
        trained(False)
    while threads() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threads() <= before, f"{threads()} threads, and before {before}"


def independent_groups():
    """No group waits for another, in whichever order the ranks use them. Rank 0 has several
    iterations of a group on the way, the first ones with it, while it waits for the other group;
    the other ranks begin with that. Then each group's sums come from a thread of its own."""
    groups = [dist.new_group() for _ in range(2)]
    states = [slimpi.torch.State(group, bits=8) for group in groups]
    parameters, values = [nn.Parameter(torch.zeros(9000))], [torch.full((9000,), rank + 1.0)]

    def futures(state):
        return [slimpi.torch.hook(state, Bucket(parameters, values)) for _ in range(4)]

    def check(sums):
        for future in sums:
            mean = future.wait()
            assert ((mean - (ranks + 1) / 2).abs() < 1e-6).all(), f"a mean of {mean[0]}"

    if rank == 0:
        early = futures(states[0])
        check(futures(states[1]))
        check(early)
    else:
        check(futures(states[1]))
        check(futures(states[0]))
    found = []

    def train(group):
        try:
            for _ in range(3):
                check(futures(slimpi.torch.State(group, bits=8)))
        except Exception as error:
            found.append(error)

    threads = [threading.Thread(target=train, args=(group,)) for group in groups]
    for thread in threads[::1 if rank == 0 else -1]:
        thread.start()
    for thread in threads:
        thread.join()
    if found:
        raise found[0]


def ended_models():
    """What slimpi keeps for a model ends with it, at the latest when the ranks make another model,
    also where that has another group."""
    gradients = [torch.randn(96, 64, generator=generator(rank))]
    parameters = [nn.Parameter(torch.zeros_like(gradients[0]))]

    def kept(state, names):
        return [name for name in names if state._comms.worker.do(
            state._world.mpi.get_state, state._comm, name)]

    for options in ({"bits": 2, "error_feedback": True},
                    {"algorithm": "powersgd", "powersgd_rank": 1}):
        group = dist.new_group()
        names = comms = None
        for each in range(4):
            state = slimpi.torch.State(group, start_powerSGD_iter=1, **options)
            assert comms in (None, state._comms), "another model has other communicators"
            assert not kept(state, names or ()), "the state of a model that has ended is kept"
            for _ in range(3):
                mean_of(state, (parameters, gradients))
            names, comms = state._names(), state._comms
            assert kept(state, names) == names, "no state"
            other = slimpi.torch.State(group, start_powerSGD_iter=1, **options)
            assert kept(other, names) == names, "the state of a model ends with another"
            del state, other
            if each == 1:
                dist.destroy_process_group(group)
                group = dist.new_group()
            gc.collect()


def short_floats():
    """The mean is exact where the shares of the ranks are too small for float16."""
    state = slimpi.torch.State(bits=8)
    for counts in (96,), (2000, 63), (2048, 512, 1024):
        smallest = [torch.full((count,), 2.0 ** -24, dtype=torch.float16) for count in counts]
        parameters = [nn.Parameter(torch.zeros_like(values)) for values in smallest]
        got, = mean_of(state, (parameters, smallest))
        for found, values in zip(got, smallest):
            assert torch.equal(found, values), f"a mean of {found[0]}, not {values[0]}"


def scales():
    """Layers between larger ones of a scale 10,000 times theirs: one has the error of its own
    quantization step, a small one has none. In both buckets of an iteration, whether or not the
    layers begin where quantization buckets do, with or without an offset that is large beside the
    step, and in each iteration."""
    for algorithm, counts, offset in itertools.product(("bytegrad", "packed"), (
            (2000, 1100, 63, 2001), (2048, 1024, 512, 3000), (9216, 1100, 600, 9216)), (0, 100)):
        state = slimpi.torch.State(algorithm=algorithm, bits=8)
        parameters = [[nn.Parameter(torch.zeros(count)) for count in counts] for _ in range(2)]
        share = 2 * (rank + 1) / (ranks + 1)  # 1 on average
        for iteration in range(3):
            normal = [torch.randn(count, generator=generator(10 * iteration + count))
                      for count in counts]
            wanted = [[scale * (offset + values) for values, scale in zip(
                normal, (1, 1e-4, 1e-4, 1))] for _ in range(2)]
            buckets = mean_of(state, *((layers, [share * value for value in values])
                                       for layers, values in zip(parameters, wanted)))
            for got, values in zip(buckets, wanted):
                where = f"{algorithm}, {counts}, offset {offset}, iteration {iteration}"
                error = [(found - value).abs().max().item() for value, found in zip(values, got)]
                steps = [(value.max() - value.min()).item() / 255 for value in values]
                assert error[2] <= 1e-6 * values[2].abs().max(), f"{where}: {error}"
                for each in 0, 1, 3:
                    assert algorithm == "packed" or error[each] <= 2 * steps[each], (
                        f"{where}: {error}, {steps}")
                assert (got[1] == 0).float().mean() < 0.1, f"{where}: values that became 0"


def loss_scale():
    """After an overflow, no gradient has residuals in units of the old loss scale."""
    state = slimpi.torch.State(algorithm="powersgd", powersgd_rank=1, start_powerSGD_iter=1)
    gradients = [torch.randn(64, 48, generator=generator(seed)) for seed in range(2)]
    parameters = [nn.Parameter(torch.zeros_like(gradient)) for gradient in gradients]

    def step(scale, overflow=0.0):
        buckets = [([p], [scale * g]) for p, g in zip(parameters, gradients)]
        buckets[0][1][0][0, 0] += overflow
        return [(got / scale).norm() / g.norm()
                for (got,), g in zip(mean_of(state, *buckets), gradients)]

    for _ in range(4):
        step(1024)
    step(1024, math.inf)
    for ratio in step(128):
        assert ratio < 1, f"a gradient's norm is {ratio} times that of the ranks'"


def refused(what, function, *arguments, **keywords):
    try:
        function(*arguments, **keywords)
    except (TypeError, slimpi.Error) as error:
        assert what in str(error), error
        return
    raise AssertionError(f"taken, without a word of {what}")


def refusals():
    model = nn.parallel.DistributedDataParallel(nn.Linear(3, 3))
    copy.deepcopy(model)  # with --torch it holds a State
    assert b"slimpi._ddp" not in pickle.dumps(model), "a pickled model that needs slimpi"
    refused("state_dict()", pickle.dumps, slimpi.torch.State())
    gradient = torch.zeros(3)
    refused("ddp_optimizer", slimpi.torch.hook, slimpi.torch.State(), (gradient, gradient))
    for attribute, what in (("_use_python_reducer", "ddp_optimizer"),
                            ("skip_all_reduce_unused_params", "leave it False"),
                            ("mixed_precision", "torch.autocast")):
        refused(what, slimpi.torch.State, model=types.SimpleNamespace(**{attribute: True}))


def caught_exits():
    """The program goes on, and ends well."""
    parser = argparse.ArgumentParser(prog="habits.py, a wrong argument on purpose")
    thread = threading.Thread(target=sys.exit, args=(3,))
    thread.start()
    thread.join()
    for kind, end in ((SystemExit, lambda: parser.parse_args(["--wrong"])),
                      (SystemExit, lambda: sys.exit("text")), (ZeroDivisionError, lambda: 1 / 0)):
        try:
            end()
        except kind:
            if kind is not SystemExit:
                sys.excepthook(*sys.exc_info())  # as a program that logs its exceptions


for case in (complex_parameters, empty_parameters, swapped_data, twice, many_models,
             independent_groups, ended_models, short_floats, scales, loss_scale,
             refusals, caught_exits):
    result = "ok"
    try:
        case()
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    sys.stdout.write(f"{case.__name__} {rank} {result}\n")
    sys.stdout.flush()
