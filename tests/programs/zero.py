# SPDX-License-Identifier: BSD-3-Clause
"""Trains a model of DeepSpeed for three steps at each stage of ZeRO, by a group of each name.

Usage: zero.py STAGES NAMES [BAD [ACCUMULATE]], for example zero.py 0123 fp16,packed nan. In the
second step the input of rank 1 has the value BAD. Each rank prints a line for each model: the name,
the stage, what the steps did to the parameters (moved, kept or broken), and the steps that
DeepSpeed says it skipped. Each step sums the gradients of ACCUMULATE micro-batches."""
import sys

import deepspeed
import torch
import torch.distributed as dist
from torch import nn

stages, names, bad, accumulate = sys.argv[1:] + ["", "1"][len(sys.argv) - 3:]
# An extension for inference, which a compiler would make now, in minutes.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
deepspeed.init_distributed()
rank, ranks = dist.get_rank(), dist.get_world_size()


class Groups:
    """The answers to DeepSpeed's questions for groups: data parallelism alone."""

    def __init__(self, name):
        self.all = dist.new_group(list(range(ranks)), group_desc=name)
        self.mine = [dist.new_group([one]) for one in range(ranks)][rank]

    def __getattr__(self, name):
        data = "data_parallel" in name
        answers = {"group": self.all if data else self.mine,
                   "rank": rank if data else 0, "world_size": ranks if data else 1}
        for end, answer in answers.items():
            if name.startswith("get_") and name.endswith(f"_parallel_{end}"):
                return lambda: answer
        raise AttributeError(name)


def train(stage, name):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 64))
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=torch.optim.SGD(model.parameters(), 0.1), mpu=Groups(name), config={
            "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": int(accumulate),
            "zero_allow_untested_optimizer": True, "zero_optimization": {"stage": stage}})

    def values():
        with torch.no_grad(), deepspeed.zero.GatheredParameters(
                list(engine.parameters()), enabled=stage == 3):
            return torch.cat([parameter.reshape(-1).clone() for parameter in engine.parameters()])

    random = torch.Generator().manual_seed(rank)
    steps = []
    for step in range(3):
        before = values()
        for _ in range(int(accumulate)):
            data = torch.randn(4, 256, generator=random)
            if bad and step == 1 and rank == 1:
                data[0, 0] = float(bad)
            engine.backward(engine(data).square().mean())
            engine.step()
        after = values()
        steps.append("broken" if not after.isfinite().all() else
                     "kept" if torch.equal(before, after) else "moved")
    sys.stdout.write(f"{name} zero{stage} {' '.join(steps)} {engine.skipped_steps}\n")
    sys.stdout.flush()


torch.set_num_threads(1)
for name in names.split(","):
    for stage in stages:
        train(int(stage), name)
dist.barrier()
dist.destroy_process_group()
