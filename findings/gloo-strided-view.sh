#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# PyTorch 2.15.0: all_reduce of a strided view over gloo sums other elements than those of the view,
# without an error.
#
# Seen on 2026-11-27, with torch==2.15.0 of the Python index, x86-64, two ranks of one machine. Rank
# r has 0 to 7 plus 10 r, and sums the view [::2], which has the elements 0, 2, 4 and 6:
#
#   [10.0, 12.0, 14.0, 16.0, 4.0, 5.0, 6.0, 7.0]
#
# So the first four elements of the memory were summed; right is 10, 1, 14, 3, 18, 5, 22, 7.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install torch==2.15.0
cat >"$work/view.py" <<'P'
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
values = torch.arange(8.0) + 10 * dist.get_rank()
dist.all_reduce(values[::2])
if dist.get_rank() == 0:
    print(values.tolist(), flush=True)
dist.barrier()
dist.destroy_process_group()
P
echo '[10.0, 12.0, 14.0, 16.0, 4.0, 5.0, 6.0, 7.0]' >"$work/seen.txt"
timeout 120 "$work/environment/bin/torchrun" --standalone --nproc-per-node 2 "$work/view.py" \
  >"$work/now.txt" 2>/dev/null
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
