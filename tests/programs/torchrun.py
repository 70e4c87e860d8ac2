# SPDX-License-Identifier: BSD-3-Clause
# Trains a model in the given ways, and knows nothing of slimpi but in `register` and `backend`.
# Each rank prints a line for each way: its name, the rank, the loss, and a digest of the parameters
# with names of shared memory that would outlive the ranks. --fail WAY: one rank ends in this way,
# after some steps of its first start. --ranks N: the program starts its ranks itself, by --init.
import argparse
import hashlib
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("ways", nargs="*", default=["ddp"])
parser.add_argument("--fail", choices=("raise", "kill", "sleep"))
parser.add_argument("--failing", type=int, default=1, help="the rank that fails")
parser.add_argument("--ranks", type=int)
parser.add_argument("--init", default="environment")
arguments = parser.parse_args()
if "register" in arguments.ways or "backend" in arguments.ways:
    import slimpi.torch


def fail(way):
    print("fails", flush=True)
    if way == "raise":
        raise ValueError("a sample cannot be read")
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)


def parameters_of(model):
    for parameter in model.parameters():
        whole = parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter
        yield whole.detach().numpy().tobytes()


def train(way, rank):
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 300))
    if way == "fsdp2":
        from torch.distributed.fsdp import fully_shard
        fully_shard(model)
    else:
        model = nn.parallel.DistributedDataParallel(model)
    if way == "register":
        slimpi.torch.register(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mine = torch.Generator().manual_seed(rank)
    first_start = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
    for step in range(6):
        loss = model(torch.randn(16, 784, generator=mine)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if arguments.fail and step == 3 and rank == arguments.failing and first_start:
            fail(arguments.fail)
    digest = hashlib.sha256(b"".join(parameters_of(model))).hexdigest()[:16]
    with open("/proc/self/maps") as maps:
        digest += "".join(line.split()[5] for line in maps
                          if "/dev/shm/" in line and "(deleted)" not in line)
    sys.stdout.write(f"{way} {rank} {loss.item():.8f} {digest}\n")
    sys.stdout.flush()


def run(rank=-1, ranks=-1):
    torch.set_num_threads(1)
    if os.environ.get("TORCHELASTIC_RESTART_COUNT") == "1" and os.environ["RANK"] == "1":
        time.sleep(3)  # the other rank finds what the first start left in the store
    backend = "slimpi" if "backend" in arguments.ways else "gloo"
    if arguments.init == "environment" and rank >= 0:
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks))
    if arguments.init in ("environment", "arguments"):
        own = {} if arguments.init == "environment" else {"rank": rank, "world_size": ranks}
        dist.init_process_group(backend, **own)
    else:
        dist.init_process_group(backend, init_method=arguments.init, rank=rank, world_size=ranks)
    for way in arguments.ways:
        train(way, dist.get_rank())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    if arguments.ranks:
        torch.multiprocessing.spawn(run, (arguments.ranks,), nprocs=arguments.ranks)
    else:
        run()
