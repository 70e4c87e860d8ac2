# SPDX-License-Identifier: BSD-3-Clause
# Trains with DistributedDataParallel over gloo, knows nothing of slimpi, and prints the time of a
# step: ddp.py [HOOK], of PyTorch's default_hooks. docs/RESULTS.md has the commands.
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

WARM_UP, STEPS, BATCH = 3, 40, 64

# MPICH's launcher says rank and size, unless other variables do.
os.environ.setdefault("RANK", os.environ.get("PMI_RANK", ""))
os.environ.setdefault("WORLD_SIZE", os.environ.get("PMI_SIZE", ""))
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(1)
network = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                        nn.Linear(512, 10))
model = DistributedDataParallel(network)
if len(sys.argv) > 1:
    model.register_comm_hook(None, getattr(default_hooks, sys.argv[1]))
optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
teacher = torch.randn(784, 10, generator=torch.Generator().manual_seed(3))
mine = torch.Generator().manual_seed(7 + rank)
begin = 0
for step in range(WARM_UP + STEPS):
    if step == WARM_UP:
        dist.barrier()
        begin = time.monotonic()
    samples = torch.randn(BATCH, 784, generator=mine)
    loss = nn.functional.cross_entropy(model(samples), (samples @ teacher).argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.barrier()
milliseconds = 1000 * (time.monotonic() - begin) / STEPS
if rank == 0:
    parameters = sum(p.numel() for p in network.parameters())
    sys.stdout.write(f"{parameters} parameters: {milliseconds:.1f} ms a step\n")
