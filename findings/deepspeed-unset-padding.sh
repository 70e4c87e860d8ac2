#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# DeepSpeed 0.19.8: where the ranks do not divide the length of a parameter, ZeRO 3 gathers and sums
# memory that nothing has written. The end of the last rank's partition is what torch.empty() has
# left there, and reduce_scatter_coalesced() puts such values behind the gradients. They are dropped
# later, so no result changes, but whoever looks at what is sent, such as a lossy codec or a check
# for NaN, meets any bits. MALLOC_PERTURB_ makes glibc fill what malloc() returns, which shows it.
#
# Seen on 2026-11-29, with deepspeed==0.19.8 and torch==2.15.0 of the Python index, x86-64, two ranks
# of one machine. The model is one weight of 3 floats, all .5, whose gradients are 1:
#
#   partition of rank 1: 0.5 unset
#   sum of gradients, rank 1: 0.5 0.5 0.5 unset
#
# The program prints "unset" for values other than 0 and .5; here they were 2.37e-38 and -8.47e+37.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install torch==2.15.0 deepspeed==0.19.8
cat >"$work/zero.py" <<'P'
import deepspeed
import torch
from deepspeed.runtime.comm import coalesced_collectives

deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # it would be compiled
deepspeed.init_distributed("gloo")
scatter = coalesced_collectives._torch_reduce_scatter_fn


def show(what, values):
    if torch.distributed.get_rank() == 1:
        values = values.reshape(-1).tolist()
        print(what, *(value if value in (0, 0.5) else "unset" for value in values), flush=True)


def call(given, *words, **names):
    show("sum of gradients, rank 1:", given)
    return scatter(given, *words, **names)


coalesced_collectives._torch_reduce_scatter_fn = call
layer = torch.nn.Linear(3, 1, bias=False)
torch.nn.init.constant_(layer.weight, 0.5)
engine, *_ = deepspeed.initialize(
    model=layer, optimizer=torch.optim.SGD(layer.parameters(), 0.1),
    config={"train_micro_batch_size_per_gpu": 1, "zero_allow_untested_optimizer": True,
            "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0}})
show("partition of rank 1:", layer.weight.ds_tensor)
engine.backward(engine(torch.ones(1, 3)).sum())
torch.distributed.destroy_process_group()
P
cat >"$work/seen.txt" <<'T'
partition of rank 1: 0.5 unset
sum of gradients, rank 1: 0.5 0.5 0.5 unset
T
DS_ACCELERATOR=cpu MALLOC_PERTURB_=1 OMP_NUM_THREADS=1 timeout 200 \
  "$work/environment/bin/torchrun" --standalone --nproc-per-node 2 "$work/zero.py" 2>/dev/null |
  grep rank >"$work/now.txt"
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
