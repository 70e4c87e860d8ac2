# SPDX-License-Identifier: BSD-3-Clause
"""A rank of tests/bench/compare_torch's job: DIRECTORY NETWORK STEPS BATCH ROW..., each row the
JSON of Row. Standard error goes to a file in DIRECTORY. Trains on Fashion-MNIST by one row after
the other; rank 0 writes a line of JSON for each: seconds and bytes of a step, and the accuracy
after all steps. Bytes are those that all hosts' links carry."""
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
WARM_UP = 3  # steps; PyTorch makes its buckets anew after the first


def read(name, header):
    with gzip.open(f"{IMAGES}/{name}-ubyte.gz") as file:
        return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)


def load(part):
    images = read(f"{part}-images-idx3", 16).view(-1, 1, 28, 28).float() / 255 - 0.286
    return images / 0.353, read(f"{part}-labels-idx1", 8).long()


class Transformer(nn.Module):
    """Four rows of an image are a token."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(112, 96)
        self.position = nn.Parameter(torch.randn(7, 96) * 0.02)
        layer = nn.TransformerEncoderLayer(96, 4, 384, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 5)
        self.last = nn.Linear(96, 10)

    def forward(self, x):
        return self.last(self.layers(self.embed(x.view(-1, 7, 112)) + self.position).mean(1))


def build(network):
    if network == "transformer":
        return Transformer()
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, stride=2), nn.ReLU(),
                         nn.Conv2d(16, 32, 3, padding=1, stride=2), nn.ReLU(), nn.Flatten(),
                         nn.Linear(32 * 49, 384), nn.ReLU(), nn.Linear(384, 10))


def use(model, row):
    """Lets the row sum the gradients. PowerSGD has rank 2 and begins with the third step, as in the
    row of slimpi's."""
    if row["options"] is not None:
        slimpi.torch.register(model, **row["options"])
    elif "owerSGD" in row["hook"]:
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2,
                                            start_powerSGD_iter=2)
        model.register_comm_hook(state, getattr(powerSGD_hook, row["hook"]))
    elif row["hook"]:
        model.register_comm_hook(None, getattr(default_hooks, row["hook"]))


def sent():
    """Bytes that this host's link has carried away; None without a lab."""
    path = f"/sys/class/net/{os.environ.get('SLIMPILAB_INTERFACE', 'eth0')}/statistics/tx_bytes"
    if "SLIMPILAB" not in os.environ:
        return None
    with open(path) as file:
        return int(file.read())


def train(model, steps, batch):
    """Seconds and this host's bytes of a step."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    images, labels = training
    order = torch.Generator().manual_seed(rank)
    begin = before = 0
    for step in range(WARM_UP + steps):
        if step == WARM_UP:
            dist.barrier()
            begin, before = time.monotonic(), sent()
        chosen = torch.randint(0, len(labels), (batch,), generator=order)
        loss = nn.functional.cross_entropy(model(images[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    seconds = (time.monotonic() - begin) / steps
    return seconds, None if before is None else (sent() - before) / steps


def accuracy(network):
    """Of the test images, each rank looks at its share."""
    images, labels = (part[rank::world] for part in test)
    with torch.no_grad():
        right = (network(images).argmax(1) == labels).float().sum()
    dist.all_reduce(right)
    return 100 * right.item() / len(test[1])


def measure(network, steps, batch, row):
    torch.manual_seed(1)
    model = DistributedDataParallel(build(network))
    use(model, row)
    seconds, sent_bytes = train(model, steps, batch)
    result = {"row": row["row"], "steps": steps, "seconds": round(seconds, 6),
              "accuracy": round(accuracy(model.module), 2),
              "parameters": sum(p.numel() for p in model.parameters()), "torch": torch.__version__}
    if sent_bytes is not None:
        total = torch.tensor([sent_bytes])
        dist.all_reduce(total)
        result["bytes"] = round(total.item())
    if rank == 0:
        print(json.dumps(result), flush=True)


_run.set_environment()
# Errors go to a file of each rank: launchers may drop what a rank prints just before it ends the
# job.
errors = os.open(f"{sys.argv.pop(1)}/rank{os.environ['RANK']}", os.O_WRONLY | os.O_CREAT, 0o600)
os.dup2(errors, sys.stderr.fileno())
_run.set_master()
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
training, test = load("train"), load("t10k")
for text in sys.argv[4:]:
    measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), json.loads(text))
