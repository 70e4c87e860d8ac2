#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# MPICH 5.0.2: after MPI_Allreduce with MPI_MAX the ranks have different results where one value is
# NaN, or where the largest values are 0.0 and -0.0.
#
# Seen on 2026-11-27, with mpich==5.0.2, mpi4py==4.1.2 and numpy==2.4.6 of the Python index, x86-64,
# two ranks of one machine, one float:
#
#   nan on rank 0: 2.0 nan
#   nan on rank 1: nan 2.0
#   0.0 and -0.0: -0.0 0.0
#
# With 40,000 floats both ranks have rank 1's value. A program whose ranks branch on such a maximum,
# for example on whether a gradient overflowed, takes different branches. MPI_MIN does the same, and
# MPI_SUM of two NaNs leaves each rank its own NaN.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install mpich==5.0.2 mpi4py==4.1.2 numpy==2.4.6
cat >"$work/maxima.py" <<'P'
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD


def maxima(what, mine):
    result = np.empty(1, np.float32)
    world.Allreduce(np.array([mine], np.float32), result, MPI.MAX)
    everywhere = world.gather(result[0].item())
    if world.rank == 0:
        print(f"{what}:", *everywhere, flush=True)


maxima("nan on rank 0", np.nan if world.rank == 0 else 2)
maxima("nan on rank 1", np.nan if world.rank == 1 else 2)
maxima("0.0 and -0.0", 0.0 if world.rank == 0 else -0.0)
P
cat >"$work/seen.txt" <<'T'
nan on rank 0: 2.0 nan
nan on rank 1: nan 2.0
0.0 and -0.0: -0.0 0.0
T
timeout 60 "$work/environment/bin/mpiexec" -n 2 "$work/environment/bin/python" "$work/maxima.py" \
  >"$work/now.txt"
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
