#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# PyTorch 2.15.0: with use_orig_params=True FullyShardedDataParallel (FSDP1) aligns the parameters of
# its flat parameter to 16 bytes, and fills the gaps with the value 42, which is gathered with the
# weights. Without use_orig_params there are no gaps. A program that looks at the range or the norm
# of what is gathered, such as a lossy codec, sees a 42 beside weights of .5.
#
# Seen on 2026-11-29, with torch==2.15.0 of the Python index, x86-64, two ranks of one machine. The
# model has a weight of 5 floats and three parameters of one float, all .5:
#
#   use_orig_params=False: rank 0 sends 0.5 0.5 0.5 0.5
#   use_orig_params=True: rank 0 sends 0.5 0.5 0.5 0.5 0.5 42.0 42.0 42.0 0.5
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install torch==2.15.0
cat >"$work/gather.py" <<'P'
import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
gather = dist.all_gather


def show(output, given, *words, **names):
    if rank == 0:
        print(f"use_orig_params={choice}: rank 0 sends", *given.tolist(), flush=True)
    return gather(output, given, *words, **names)


dist.all_gather = show
for choice in (False, True):
    layers = torch.nn.Sequential(torch.nn.Linear(5, 1), torch.nn.Linear(1, 1))
    for parameter in layers.parameters():
        torch.nn.init.constant_(parameter, 0.5)
    model = FullyShardedDataParallel(layers, device_id=torch.device("cpu"), use_orig_params=choice)
    model(torch.ones(1, 5))
dist.destroy_process_group()
P
cat >"$work/seen.txt" <<'T'
use_orig_params=False: rank 0 sends 0.5 0.5 0.5 0.5
use_orig_params=True: rank 0 sends 0.5 0.5 0.5 0.5 0.5 42.0 42.0 42.0 0.5
T
OMP_NUM_THREADS=1 timeout 120 "$work/environment/bin/torchrun" --standalone --nproc-per-node 2 \
  "$work/gather.py" >"$work/now.txt" 2>/dev/null
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
