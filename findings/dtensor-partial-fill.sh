#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# PyTorch 2.15.0: fill_(1) of a DTensor whose placement is Partial gives a tensor of 2 over two ranks,
# without an error. Every rank writes 1 to its part, and the parts are then summed.
#
# Expected: 1 everywhere, as torch.fill and x + 1 have the right values, or the error of other
# in-place operations on this placement.
#
# Seen on 2026-11-28, with torch==2.15.0 of the Python index, x86-64, gloo, two ranks of one machine.
# x is a sum of which each rank has a part, as a gradient of a replicated parameter before its sum:
#
#   x: [3.0, 3.0]
#   x + 1: [4.0, 4.0]
#   torch.fill(x, 1): [1.0, 1.0]
#   x.copy_(ones): [1.0, 1.0]
#   x.clamp_(max=1): RuntimeError
#   x.fill_(1): [2.0, 2.0]
#   x[:] = 5: [10.0, 10.0]
#   torch.nn.init.ones_(x): [2.0, 2.0]
#   torch.empty_like(x).fill_(3): [6.0, 6.0]
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install torch==2.15.0 numpy==2.4.6
cat >"$work/fill.py" <<'P'
import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Partial, Replicate, distribute_tensor, init_device_mesh

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
ones = distribute_tensor(torch.ones(2), mesh, [Replicate()])


def say(what, function):
    x = DTensor.from_local(torch.full((2,), 1.0 + dist.get_rank()), mesh, [Partial("sum")])
    try:
        values = function(x).full_tensor().tolist()
    except RuntimeError:
        values = "RuntimeError"
    if dist.get_rank() == 0:
        print(f"{what}: {values}", flush=True)


def assign(x):
    x[:] = 5
    return x


say("x", lambda x: x)
say("x + 1", lambda x: x + 1)
say("torch.fill(x, 1)", lambda x: torch.fill(x, 1))
say("x.copy_(ones)", lambda x: x.copy_(ones))
say("x.clamp_(max=1)", lambda x: x.clamp_(max=1))
say("x.fill_(1)", lambda x: x.fill_(1))
say("x[:] = 5", assign)
say("torch.nn.init.ones_(x)", torch.nn.init.ones_)
say("torch.empty_like(x).fill_(3)", lambda x: torch.empty_like(x).fill_(3))
dist.barrier()
dist.destroy_process_group()
P
cat >"$work/seen.txt" <<'T'
x: [3.0, 3.0]
x + 1: [4.0, 4.0]
torch.fill(x, 1): [1.0, 1.0]
x.copy_(ones): [1.0, 1.0]
x.clamp_(max=1): RuntimeError
x.fill_(1): [2.0, 2.0]
x[:] = 5: [10.0, 10.0]
torch.nn.init.ones_(x): [2.0, 2.0]
torch.empty_like(x).fill_(3): [6.0, 6.0]
T
timeout 120 "$work/environment/bin/torchrun" --standalone --nproc-per-node 2 "$work/fill.py" \
  >"$work/now.txt" 2>/dev/null
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
