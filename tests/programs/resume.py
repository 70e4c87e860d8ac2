# SPDX-License-Identifier: BSD-3-Clause
# Trains with DistributedDataParallel and slimpi.torch in two runs, with a checkpoint between them.
#   resume.py save FILE OPTIONS...   all steps; each rank keeps a checkpoint of the middle
#   resume.py load FILE OPTIONS...   resumes from it
# Where FILE is a directory, torch.distributed.checkpoint has one checkpoint of all ranks there.
# OPTIONS is a dictionary in JSON, for a model of its own. Prints, for each model, each rank and a
# digest of the model at the end, and how many sums the hook did not make with DDP's own buckets.
import hashlib
import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

import slimpi.torch

if os.path.isdir(sys.argv[2]):
    import torch.distributed.checkpoint

STEPS, SAVED_AT = 9, 5
what, file = sys.argv[1], sys.argv[2]
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()


class Network(nn.Module):
    """Its layers are not called in the order in which it has them, so DDP changes its buckets."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(200, 10)
        self.layers = nn.ModuleList(nn.Linear(200, 200) for _ in range(8))

    def forward(self, x):
        for i in (3, 0, 7, 1, 6, 2, 5, 4):
            x = torch.relu(self.layers[i](x)) + x
        return self.last(x)


def train(number, options):
    torch.manual_seed(1)
    model = nn.parallel.DistributedDataParallel(Network(), bucket_cap_mb=0.4)
    state = slimpi.torch.register(model, **options)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    def kept():
        return {"model": model.module.state_dict(), "slimpi": state.state_dict()}

    checkpoint = f"{file}.{number}.{rank}"
    together = os.path.join(file, str(number)) if os.path.isdir(file) else None
    first = 0
    if what == "load":
        if together:
            saved = kept()
            torch.distributed.checkpoint.load(saved, checkpoint_id=together)
        else:
            saved = torch.load(checkpoint)
        model.module.load_state_dict(saved["model"])
        state.load_state_dict(saved["slimpi"])
        first = SAVED_AT
    regrouped, regroup = [], state._regrouped
    state._regrouped = lambda: (regrouped.append(1), regroup())[1]
    for step in range(first, STEPS):
        if step == SAVED_AT and what == "save":
            if together:
                torch.distributed.checkpoint.save(kept(), checkpoint_id=together)
            else:
                torch.save(kept(), checkpoint)
        data = torch.randn(16, 200, generator=torch.Generator().manual_seed(100 * step + rank))
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    sys.stdout.write(f"{number} {rank} {digest.hexdigest()[:16]} {len(regrouped)}\n")
    sys.stdout.flush()


for number, options in enumerate(sys.argv[3:]):
    train(number, json.loads(options))
dist.destroy_process_group()
