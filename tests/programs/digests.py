# SPDX-License-Identifier: BSD-3-Clause
"""Prints the row of docs/data/digests.csv for ALGORITHM [BITS], from sums by torch.distributed.
The job must have these options. The input is that of tools/bench/digests.cpp. Fails if the mean of
a gradient of DistributedDataParallel is not correctly rounded."""
import hashlib
import sys

import numpy as np
import torch
import torch.distributed as dist

import slimpi.torch

COUNT, CALLS, BLOCK = 20011, 2, 512


def bell(rank, call, i):
    bits = np.uint64(rank * 1000003 + call * 7919) + 64 * i
    bits += np.uint64(0x9e3779b97f4a7c15)
    for shift, factor in (30, 0xbf58476d1ce4e5b9), (27, 0x94d049bb133111eb):
        bits = (bits ^ bits >> np.uint64(shift)) * np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    parts = sum((bits >> np.uint64(16 * part) & np.uint64(0xffff)).astype(np.int64)
                for part in range(4))
    return ((parts - 2 * 65535) / 65536).astype(np.float32)


def ugly(rank, call):
    i = np.arange(COUNT, dtype=np.uint64)
    x = bell(rank, call, i)
    block = (i // np.uint64(BLOCK)).astype(int)
    first = i % np.uint64(BLOCK) == 100
    x = np.select([block == 1, block == 2, block == 3, block == 11],
                  [x * np.float32(2.0 ** -130), x * np.float32(2.0 ** 90), x + np.float32(1e6),
                   np.where(i % np.uint64(97) == 0, np.float32(0), x * np.float32(16))], x)
    x[block == 4] = np.where(i % np.uint64(97) == 0, np.float32(-0.0), np.float32(0))[block == 4]
    x[block == 5] = 5
    x[block == 6] = ((i + np.uint64(rank)) % np.uint64(7)).astype(np.float32)[block == 6]
    if rank == 0:
        x[first & (block == 7)] = np.nan
    x[first & (block == 8)] = np.inf if rank % 2 == 0 else -np.inf
    x[first & (block == 9)] = np.finfo(np.float32).max
    x[first & (block == 10)] = 1e30
    return x.astype(np.float32)


dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
digest = hashlib.sha256()
for call in range(CALLS):
    values = torch.from_numpy(ugly(rank, call))
    dist.all_reduce(slimpi.torch.compress(values))
    digest.update(values.numpy().tobytes())
digests = [None] * ranks
dist.all_gather_object(digests, digest.hexdigest())
if rank == 0:
    algorithm, bits = (sys.argv[1:] + [""])[:2]
    same = digests[0] if len(set(digests)) == 1 else "RANKS DIFFER"
    print(f"{ranks} x 1,allreduce,{algorithm},{bits},,{same}")
# Small gradients are summed uncompressed, except with fp16 and bf16. gloo's mean over three ranks
# differs from this one in the last bit, at least in the first step (findings/ddp-mean-bits.sh).
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False),
                                                  gradient_as_bucket_view=True)
for _ in range(0 if sys.argv[1] in ("fp16", "bf16") else 2):
    model.zero_grad(set_to_none=False)
    model(torch.tensor([5.0 if rank == 0 else 0.0])).sum().backward()
    mean = model.module.weight.grad.item()
    if mean != np.float32(5 / ranks):
        sys.exit(f"the mean of 5 and zeros over {ranks} ranks is {mean!r}")
# A thread of gloo that drops its last tensor while the interpreter ends would abort the process.
dist.destroy_process_group()
