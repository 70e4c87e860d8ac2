#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# PyTorch 2.15.0: all_reduce with SUM of a bool tensor over gloo adds the bytes of the bools and
# leaves bytes other than 0 and 1 in the tensor. After eight sums over two ranks True is False.
#
# Expected: an error, or True as in torch's own sum of bools, bool + bool.
#
# Seen on 2026-11-28, with torch==2.15.0 of the Python index, x86-64, two ranks of one machine, one
# flag that is True on both ranks:
#
#   after sum 1: True, byte 2
#   after sum 2: True, byte 4
#   after sum 3: True, byte 8
#   after sum 4: True, byte 16
#   after sum 5: True, byte 32
#   after sum 6: True, byte 64
#   after sum 7: True, byte 128
#   after sum 8: False, byte 0
#   torch's own True + True: True, byte 1
#
# The byte overflows at 256, so one sum over 256 ranks would lose the flag, too (not run). MAX over
# three ranks kept True and the byte 1. PyTorch's code for NCCL replaces SUM of bools by MAX.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install torch==2.15.0 numpy==2.4.6
cat >"$work/flag.py" <<'P'
import torch
import torch.distributed as dist


def say(what, flag):
    if dist.get_rank() == 0:
        print(f"{what}: {flag.item()}, byte {flag.view(torch.uint8).item()}", flush=True)


dist.init_process_group("gloo")
flag = torch.tensor([True])
for count in range(1, 9):
    dist.all_reduce(flag)
    say(f"after sum {count}", flag)
say("torch's own True + True", torch.tensor([True]) + torch.tensor([True]))
dist.barrier()
dist.destroy_process_group()
P
cat >"$work/seen.txt" <<'T'
after sum 1: True, byte 2
after sum 2: True, byte 4
after sum 3: True, byte 8
after sum 4: True, byte 16
after sum 5: True, byte 32
after sum 6: True, byte 64
after sum 7: True, byte 128
after sum 8: False, byte 0
torch's own True + True: True, byte 1
T
timeout 120 "$work/environment/bin/torchrun" --standalone --nproc-per-node 2 "$work/flag.py" \
  >"$work/now.txt" 2>/dev/null
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
