# SPDX-License-Identifier: BSD-3-Clause
#   slimpi-lab --hosts 4 --rate 200mbit -- slimpi-run python3 tests/bench/ddp.py
# with tools/python in PYTHONPATH trains a network with DistributedDataParallel by one method after
# the other, and writes a line of JSON for each: seconds and bytes of a step, and the accuracy after
# all steps. Bytes are those that the links of all ranks carry.
import argparse
import gzip
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import slimpi.torch
from slimpi import _run

IMAGES = "/usr/share/datasets/fashion-mnist"

SLIMPI = {
    "MPI's own sum": {"algorithm": "off"},
    "slimpi, allreduce": {"algorithm": "allreduce"},
    "slimpi, fp16": {"algorithm": "fp16"},
    "slimpi, 8 bits": {"bits": 8},
    "slimpi, 4 bits, error feedback": {"bits": 4, "error_feedback": True},
    "slimpi, 2 bits, error feedback": {"bits": 2, "error_feedback": True},
    "slimpi, powersgd, rank 2": {"algorithm": "powersgd", "powersgd_rank": 2,
                                 "start_powerSGD_iter": 2},
}
PYTORCH = ("gloo", "gloo, allreduce_hook", "gloo, fp16_compress_hook",
           "gloo, batched_powerSGD_hook, rank 2", "gloo, powerSGD_hook, rank 2")

parser = argparse.ArgumentParser()
parser.add_argument("--network", choices=("cnn", "transformer"), default="cnn")
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--warm-up", type=int, default=3)
parser.add_argument("--skip", action="append", default=[])
parser.add_argument("--only", action="append", default=[])
parser.add_argument("--rate", default="")
arguments = parser.parse_args()


def read(name, header):
    with gzip.open(f"{IMAGES}/{name}-ubyte.gz") as file:
        return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)


def load(part):
    images = read(f"{part}-images-idx3", 16).view(-1, 1, 28, 28).float() / 255 - 0.286
    return images / 0.353, read(f"{part}-labels-idx1", 8).long()


class Transformer(nn.Module):
    """Each row of an image is a token."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(28, 96)
        self.position = nn.Parameter(torch.randn(28, 96) * 0.02)
        layer = nn.TransformerEncoderLayer(96, 4, 384, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 5)
        self.last = nn.Linear(96, 10)

    def forward(self, x):
        return self.last(self.layers(self.embed(x.squeeze(1)) + self.position).mean(1))


def network():
    if arguments.network == "transformer":
        return Transformer()
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, stride=2), nn.ReLU(),
                         nn.Conv2d(16, 32, 3, padding=1, stride=2), nn.ReLU(), nn.Flatten(),
                         nn.Linear(32 * 49, 384), nn.ReLU(), nn.Linear(384, 10))


def use(model, method):
    if method in SLIMPI:
        slimpi.torch.register(model, **SLIMPI[method])
    elif "fp16" in method:
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif "allreduce_hook" in method:
        model.register_comm_hook(None, default_hooks.allreduce_hook)
    elif "owerSGD" in method:
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2,
                                            start_powerSGD_iter=2)
        batched = "batched" in method
        model.register_comm_hook(state, powerSGD_hook.batched_powerSGD_hook if batched
                                 else powerSGD_hook.powerSGD_hook)


def sent():
    """Bytes that this host's link has carried away."""
    path = f"/sys/class/net/{os.environ.get('SLIMPILAB_INTERFACE', 'eth0')}/statistics/tx_bytes"
    try:
        with open(path) as file:
            return int(file.read())
    except OSError:
        return 0


def run(method, images, labels, test):
    torch.manual_seed(1)
    model = DistributedDataParallel(network())
    use(model, method)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    order = torch.Generator().manual_seed(rank)
    begin = before = 0
    for step in range(arguments.warm_up + arguments.steps):
        if step == arguments.warm_up:
            dist.barrier()
            begin, before = time.monotonic(), sent()
        chosen = torch.randint(0, len(labels), (arguments.batch,), generator=order)
        loss = nn.functional.cross_entropy(model(images[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    seconds = (time.monotonic() - begin) / arguments.steps
    total = torch.tensor([float(sent() - before)])
    dist.all_reduce(total)
    with torch.no_grad():
        part = slice(rank * 2500, rank * 2500 + 2500)
        right = (model.module(test[0][part]).argmax(1) == test[1][part]).float().mean()
    dist.all_reduce(right)
    if rank == 0:
        print(json.dumps({"network": arguments.network, "rate": arguments.rate, "method": method,
                          "steps": arguments.steps, "seconds": round(seconds, 5),
                          "bytes": int(total.item() / arguments.steps),
                          "accuracy": round(100 * right.item() / world, 2),
                          "torch": torch.__version__}), flush=True)


torch.set_num_threads(1)
_run.set_environment()
_run.set_master()
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
training, test = load("train"), load("t10k")
for method in (*PYTORCH, *SLIMPI):
    wanted = not arguments.only or method in arguments.only
    if wanted and method not in arguments.skip:
        run(method, *training, test)
sys.stdout.flush()
