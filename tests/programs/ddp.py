# SPDX-License-Identifier: BSD-3-Clause
# Trains with DistributedDataParallel in each of the given modes, and knows nothing of slimpi. Each
# rank prints a line for each mode: mode, rank, a digest of its model's parameters, and the accuracy
# on samples that it has not trained on.
import argparse
import contextlib
import hashlib
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("modes", nargs="*", default=["plain"])
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--width", type=int, default=192)
parser.add_argument("--device", default="cpu")
parser.add_argument("--backend", default="gloo")
arguments = parser.parse_args()

torch.set_num_threads(1)
torch.use_deterministic_algorithms(arguments.device != "cpu")
dist.init_process_group(arguments.backend)
rank, world = dist.get_rank(), dist.get_world_size()
centers = torch.randn(10, 1, 12, 12, generator=torch.Generator().manual_seed(5))


class Network(nn.Module):
    def __init__(self, unused):
        super().__init__()
        width = arguments.width
        self.convolution = nn.Conv2d(1, 8, 3, padding=1)
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(8 * 144, width), nn.ReLU(),
                                    nn.Linear(width, 2 * width), nn.ReLU(),
                                    nn.Linear(2 * width, 10))
        self.unused = nn.Linear(width, width) if unused else None

    def forward(self, x):
        return self.layers(torch.relu(self.convolution(x)))


def samples(count, generator, kind):
    labels = torch.randint(0, 10, (count,), generator=generator)
    noise = torch.randn(count, 1, 12, 12, generator=generator)
    values = (0.35 * centers[labels] + noise).to(arguments.device, kind)
    return values, labels.to(arguments.device)


def build(mode, kind):
    group = None
    if mode == "groups":  # even and odd ranks train models of their own
        groups = [dist.new_group(list(range(first, world, 2))) for first in range(2)]
        group = groups[rank % 2]
    network = Network(mode == "unused").to(arguments.device, kind)
    if mode == "no_ddp":
        return network, [network]
    model = DistributedDataParallel(network, bucket_cap_mb=0.3, process_group=group,
                                    find_unused_parameters=mode == "unused",
                                    static_graph=mode == "static",
                                    gradient_as_bucket_view=mode == "views")
    if mode == "fp16_hook":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    if mode == "builtin_hook":
        model._register_builtin_comm_hook(dist.BuiltinCommHookType.ALLREDUCE)
    models = [model]
    if mode == "two":
        models.append(DistributedDataParallel(Network(False).to(arguments.device),
                                              bucket_cap_mb=0.3))
    return network, models


def fail(mode):
    if mode == "raise":
        raise ValueError("a sample cannot be read")
    if mode == "exit":
        sys.exit(3)
    if mode == "system_exit":
        raise SystemExit(3)
    if mode == "os_exit":
        os._exit(3)
    if mode in ("SIGKILL", "SIGTERM", "SIGINT"):
        os.kill(os.getpid(), getattr(signal, mode))


def train(mode):
    torch.manual_seed(1)
    kind = torch.float64 if mode == "double" else torch.float32
    network, models = build(mode, kind)
    optimizer = torch.optim.SGD([p for m in models for p in m.parameters()], 0.05, momentum=0.9)
    mine = torch.Generator().manual_seed(100 + rank)
    uneven = mode.startswith("join")
    with models[0].join(divide_by_initial_world_size=mode == "join") if uneven else (
            contextlib.nullcontext()):
        for step in range(arguments.steps + (rank if uneven else 0)):
            if rank == 1 and step == 3:
                fail(mode)
            images, labels = samples(64, mine, kind)
            held = mode == "accumulate" and step % 3 != 2
            with models[0].no_sync() if held else contextlib.nullcontext():
                sum(nn.functional.cross_entropy(m(images), labels) for m in models).backward()
            if not held:
                optimizer.step()
                optimizer.zero_grad()
    images, labels = samples(1000, torch.Generator().manual_seed(7), kind)
    with torch.no_grad():
        accuracy = (network(images).argmax(1) == labels).float().mean().item()
    digest = hashlib.sha256()
    for parameter in network.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    sys.stdout.write(f"{mode} rank {rank} {digest.hexdigest()[:16]} {100 * accuracy:.1f}\n")
    sys.stdout.flush()


for mode in arguments.modes:
    train(mode)
