#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# PyTorch 2.15.0: DistributedDataParallel multiplies gradients by the rounded value of 1/ranks before
# it sums them. With PyTorch's allreduce_hook it divides them by the number of ranks. So with three
# ranks the hook changes bits of the gradients, although its documentation says that it leaves the
# results of DDP as they are.
#
# gradient_as_bucket_view=True without a hook does both. The first backward pass multiplies, and a
# later one divides if zero_grad(set_to_none=False) has kept the gradient, so the same batch gives
# other bits.
#
# Expected: the same bits in all rows, or in all rows but that of the hook.
#
# Seen on 2026-11-29, with torch==2.15.0 of the Python index, x86-64, gloo, three ranks of one
# machine. The gradient is 5 on rank 0 and 0 on the others; correctly rounded the mean is 1.66666663:
#
#   no hook, step 1: 1.66666675
#   no hook, step 2: 1.66666675
#   gradient_as_bucket_view, step 1: 1.66666675
#   gradient_as_bucket_view, step 2: 1.66666663
#   allreduce_hook, step 1: 1.66666663
#   allreduce_hook, step 2: 1.66666663
#
# With two ranks all rows are 2.5. If rank 0 has the values 1 to 200 in place of 5, 66 of the 200
# means without a hook differ from those of the hook.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install torch==2.15.0 numpy==2.4.6
cat >"$work/mean.py" <<'P'
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

dist.init_process_group("gloo")
batch = torch.tensor([5.0 if dist.get_rank() == 0 else 0.0])


def say(what, hook=None, **choices):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False), **choices)
    if hook is not None:
        model.register_comm_hook(None, hook)
    for step in (1, 2):
        model.zero_grad(set_to_none=False)
        model(batch).sum().backward()
        if dist.get_rank() == 0:
            print(f"{what}, step {step}: {model.module.weight.grad.item():.9g}", flush=True)


say("no hook")
say("gradient_as_bucket_view", gradient_as_bucket_view=True)
say("allreduce_hook", allreduce_hook)
dist.barrier()
dist.destroy_process_group()
P
cat >"$work/seen.txt" <<'T'
no hook, step 1: 1.66666675
no hook, step 2: 1.66666675
gradient_as_bucket_view, step 1: 1.66666675
gradient_as_bucket_view, step 2: 1.66666663
allreduce_hook, step 1: 1.66666663
allreduce_hook, step 2: 1.66666663
T
OMP_NUM_THREADS=1 timeout 120 "$work/environment/bin/torchrun" --standalone --nproc-per-node 3 \
  "$work/mean.py" >"$work/now.txt" 2>/dev/null
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
