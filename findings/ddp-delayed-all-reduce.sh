#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# PyTorch 2.15.0, DistributedDataParallel with delay_all_reduce_named_params over gloo: backward()
# returns before the sum of the delayed parameters is complete. An optimizer that steps at once uses
# other gradients on each rank.
#
# Expected: complete gradients after backward(), as for all other parameters.
#
# Seen on 2026-11-28, with torch==2.15.0 of the Python index, x86-64, two ranks of one machine, the
# gradient of a delayed weight of 64 MB:
#
#   after backward: the ranks have different gradients
#   2 seconds later: the ranks have equal gradients
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install torch==2.15.0 numpy==2.4.6
cat >"$work/delayed.py" <<'P'
import time

import torch
import torch.distributed as dist
from torch import nn


def compare(when, gradient):
    everyone = [torch.empty_like(gradient) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, gradient)
    if dist.get_rank() == 0:
        same = "equal" if torch.equal(*everyone) else "different"
        print(f"{when}: the ranks have {same} gradients", flush=True)


torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(1)
first, delayed = nn.Linear(64, 4000), nn.Linear(4000, 4000)
model = nn.parallel.DistributedDataParallel(
    nn.Sequential(first, delayed), delay_all_reduce_named_params=[("1.weight", delayed.weight)],
    param_to_hook_all_reduce=first.weight)
inputs = torch.randn(4, 64, generator=torch.Generator().manual_seed(dist.get_rank()))
model(inputs).square().mean().backward()
at_once = delayed.weight.grad.clone()
time.sleep(2)
later = delayed.weight.grad.clone()
compare("after backward", at_once)
compare("2 seconds later", later)
dist.barrier()
dist.destroy_process_group()
P
cat >"$work/seen.txt" <<'T'
after backward: the ranks have different gradients
2 seconds later: the ranks have equal gradients
T
timeout 120 "$work/environment/bin/torchrun" --standalone --nproc-per-node 2 "$work/delayed.py" \
  >"$work/now.txt" 2>/dev/null
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
