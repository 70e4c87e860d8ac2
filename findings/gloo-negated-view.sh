#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# PyTorch 2.15.0: all_reduce and broadcast over gloo do not change the imaginary part of a conjugated
# tensor, and return no error. conj() of a complex tensor is a view, and its imaginary part is a view
# whose values are negated as they are read; all_gather reads it rightly.
#
# Seen on 2026-11-29, with torch==2.15.0 of the Python index, x86-64, two ranks of one machine. Rank
# r has the number 1 + (2 + r)j; what rank 1 has afterwards:
#
#   all_reduce of z.imag: 5.0
#   all_reduce of z.conj().imag: -3.0
#   broadcast of z.conj().imag from rank 0: -3.0
#   all_gather of z.conj().imag: -2.0 -3.0
#
# Right are -5 and -2 in the second and third rows. The conjugated tensor itself is refused with an
# error that advises resolve_conj().
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install torch==2.15.0
cat >"$work/view.py" <<'P'
import torch
import torch.distributed as dist


def number():
    return torch.tensor([complex(1, 2 + dist.get_rank())])


def say(what, *values):
    if dist.get_rank() == 1:
        print(what + ":", *(value.item() for value in values), flush=True)


dist.init_process_group("gloo")
plain, summed, sent, given = number().imag, *(number().conj().imag for _ in range(3))
dist.all_reduce(plain)
say("all_reduce of z.imag", plain)
dist.all_reduce(summed)
say("all_reduce of z.conj().imag", summed)
dist.broadcast(sent, 0)
say("broadcast of z.conj().imag from rank 0", sent)
gathered = [torch.zeros(1), torch.zeros(1)]
dist.all_gather(gathered, given)
say("all_gather of z.conj().imag", *gathered)
dist.barrier()
dist.destroy_process_group()
P
cat >"$work/seen.txt" <<'T'
all_reduce of z.imag: 5.0
all_reduce of z.conj().imag: -3.0
broadcast of z.conj().imag from rank 0: -3.0
all_gather of z.conj().imag: -2.0 -3.0
T
timeout 120 "$work/environment/bin/torchrun" --standalone --nproc-per-node 2 "$work/view.py" \
  >"$work/now.txt" 2>/dev/null
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
