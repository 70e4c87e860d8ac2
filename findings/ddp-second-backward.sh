#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# PyTorch 2.15.0: after two forward passes of a DistributedDataParallel model, only the first of two
# backward passes sums gradients over the ranks. The second one adds each rank's own gradient to the
# mean, without an error or a warning, and the ranks' models drift apart.
#
# Expected: the mean of both, as if each backward pass followed its forward pass, or an error. DDP
# sums in hooks of the backward pass, so the order of forward passes should not matter. A
# discriminator that sees a real and a generated batch before either backward pass is an example.
#
# Seen on 2026-11-29, with torch==2.15.0 of the Python index, x86-64, gloo, two ranks of one machine.
# Rank r has the gradient 1 + r in each pass, so 3 is right on both ranks:
#
#   forward, backward, forward, backward: 3.0 3.0
#   forward, forward, backward of the sum: 3.0 3.0
#   forward, forward, backward, backward: 2.5 3.5
#
# find_unused_parameters, static_graph or gradient_as_bucket_view changes no row.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install torch==2.15.0 numpy==2.4.6
cat >"$work/passes.py" <<'P'
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
batch = torch.tensor([1.0 + dist.get_rank()])


def say(what, passes):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
    passes(model)
    gradients = [torch.empty(1) for _ in range(2)]
    dist.all_gather(gradients, model.module.weight.grad.view(1))
    if dist.get_rank() == 0:
        print(f"{what}:", *(gradient.item() for gradient in gradients), flush=True)


def in_turn(model):
    model(batch).backward()
    model(batch).backward()


def one_loss(model):
    (model(batch) + model(batch)).backward()


def two_losses(model):
    real, generated = model(batch), model(batch)
    real.backward()
    generated.backward()


say("forward, backward, forward, backward", in_turn)
say("forward, forward, backward of the sum", one_loss)
say("forward, forward, backward, backward", two_losses)
dist.barrier()
dist.destroy_process_group()
P
cat >"$work/seen.txt" <<'T'
forward, backward, forward, backward: 3.0 3.0
forward, forward, backward of the sum: 3.0 3.0
forward, forward, backward, backward: 2.5 3.5
T
OMP_NUM_THREADS=1 timeout 120 "$work/environment/bin/torchrun" --standalone --nproc-per-node 2 \
  "$work/passes.py" >"$work/now.txt" 2>/dev/null
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
