#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# PyTorch 2.15.0: after torchrun has restarted the ranks (--max-restarts), gloo reads the addresses
# of the ranks that have ended. A rank that comes 10 seconds after the other one is waited for in
# the first start, and not in the second, where init_process_group fails at its timeout.
#
# Seen on 2026-11-27, with torch==2.15.0 of the Python index, x86-64, two ranks of one machine:
#
#   first start, rank 0: joined
#   second start, rank 0: RuntimeError Gloo connectFullMesh failed
#
# The same is seen with --master-port N, and with --rdzv-backend c10d. torchrun keeps the store, and
# the second start has the same keys in it: rank 0 finds what rank 1 wrote in the first one.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install torch==2.15.0
cat >"$work/restart.py" <<'P'
import datetime
import os
import pathlib
import sys
import time

import torch.distributed as dist

start = ["first", "second"][int(os.environ["TORCHELASTIC_RESTART_COUNT"])]
rank = int(os.environ["RANK"])
there = pathlib.Path(sys.argv[1], start)
if rank == 0:
    there.touch()
else:
    for _ in range(300):
        if there.exists():
            break
        time.sleep(0.1)
    time.sleep(10)
try:
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=40))
except RuntimeError as error:
    if rank == 0:
        text = " ".join(str(error).split()[:3])
        print(f"{start} start, rank 0: RuntimeError {text}", flush=True)
        os._exit(1)
    time.sleep(120)  # torchrun ends it
if rank == 0:
    print(f"{start} start, rank 0: joined", flush=True)
    if start == "first":
        time.sleep(1)
        os._exit(1)  # a rank that fails
dist.barrier()
dist.destroy_process_group()
P
cat >"$work/seen.txt" <<'T'
first start, rank 0: joined
second start, rank 0: RuntimeError Gloo connectFullMesh failed
T
OMP_NUM_THREADS=1 timeout 300 "$work/environment/bin/torchrun" --standalone --max-restarts 1 \
  --nproc-per-node 2 "$work/restart.py" "$work" >"$work/now.txt" 2>"$work/errors.txt" || true
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
