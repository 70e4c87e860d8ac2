#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# 16-bit floats by SLIMPI_TYPES, under MPICH 5, which has them: every way to make a sum, which sums
# are left to MPI, and that nothing changes under an MPI without them. Others: every_mpi.sh.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export UCX_LOG_LEVEL=error SLIMPI_BITS=8 SLIMPI_RANKS_PER_NODE=1
rows <<END
a sum of floats | 2 | types=float,float16 log=info | sum:100000
END
if grep -q 'MPICH Version: *4\.0' err.txt; then
  holds "what this MPI has not is said" grep -q 'SLIMPI_TYPES names float16, which' err.txt
fi

. "$top_srcdir/tests/mpis/mpich5"
MPIEXEC=$mpi_launcher
[ -x "$mpi_launcher" ] || skip "MPICH 5 is not here"
$mpi_c -I"$top_srcdir" -I"$top_srcdir/include" -O1 -o short_floats \
  "$top_srcdir/tests/mpi/values/short_floats.c" -lm
export SLIMPI_TYPES=float,float16,bfloat16 SLIMPI_MIN_SIZE=0

# A sum that would not become shorter is left to MPI.
for left in algorithm=fp16 types=float,double algorithm=bf16 algorithm=allreduce \
  algorithm=decentralized max_error=1e-5 bits=16; do
  case $left in algorithm=fp16 | types*) tier='' ;; *) tier=+ ;; esac
  rows "out 1 ^14 sums,; datatype=14" <<END
$tier $left           | 4 | $left | ./short_floats float16 Allreduce mpi
$tier $left, bfloat16 | 4 | $left | ./short_floats bfloat16 Iallreduce mpi
END
done

# short_floats TYPE WAY BOUND: the bound of the error is in steps of the type; `mpi` is MPI's sums.
float16=types.float16.calls=14 bfloat16=types.bfloat16.calls=14
rows "out 1 ^14 sums," <<END
float16                            | 4   |  | ./short_floats float16 Allreduce 1 \
  | same float16.txt; $float16
bfloat16                           | 4   |  | ./short_floats bfloat16 Allreduce 1 \
  | same bfloat16.txt; $bfloat16
MPI_REAL2 is float16               | 4   |  | ./short_floats real2 Allreduce 1 \
  | same float16.txt; $float16
nonblocking                        | 4   |  | ./short_floats float16 Iallreduce 1 \
  | same float16.txt; $float16
persistent                         | 4   |  | ./short_floats float16 Allreduce_init 1 \
  | same float16.txt; $float16
large counts                       | 4   |  | ./short_floats float16 large 1 \
  | same float16.txt; $float16
gathered                           | 4   | calls=allreduce,allgather \
  | ./short_floats float16 Allgatherv .13 | $float16
gathered, bfloat16                 | 4   | calls=allreduce,allgather \
  | ./short_floats bfloat16 Iallgatherv .13 | $bfloat16
+ bfloat16, nonblocking            | 4   |  | ./short_floats bfloat16 Iallreduce 1 \
  | same bfloat16.txt; $bfloat16
+ bfloat16, persistent             | 4   |  | ./short_floats bfloat16 Allreduce_init 1 \
  | same bfloat16.txt; $bfloat16
+ bfloat16, large counts           | 4   |  | ./short_floats bfloat16 large 1 \
  | same bfloat16.txt; $bfloat16
# The error is that of what the program gets. MPI would send 2 bytes a value.
two ranks a node                   | 4/2 | verify=1 | ./short_floats float16 Allreduce 1 \
  | compressed=14; error.max_rel_l2>1e-4; error.max_rel_l2<0.02; \
    bytes.plain=$((14 * 2 * 2 * 10241))
+ qsgd                             | 4   | algorithm=qsgd | ./short_floats float16 Allreduce 2 \
  | compressed=14
+ an error bound                   | 4   | max_error=0.05 | ./short_floats float16 Allreduce 8 \
  | $float16
+ powersgd, but what is not finite | 4   | algorithm=powersgd start=0 \
  | ./short_floats float16 Iallreduce any | algorithms.powersgd.calls=13
+ replicas, but what is not finite | 4   | algorithm=low_precision_decentralized \
  | ./short_floats float16 Allreduce any | types.float16.calls=13
in rank order, rounded once        | 4/2 | algorithm=allreduce hierarchy=flat \
  | ./short_floats float16 Allreduce 0 | $float16
bfloat16 in rank order             | 4/2 | algorithm=allreduce hierarchy=flat \
  | ./short_floats bfloat16 Allreduce 0 | $bfloat16
on one node                        | 4/4 |  | ./short_floats bfloat16 Allreduce mpi | single_node=14
less than the least size           | 4   | min_size=20483 | ./short_floats float16 Allreduce mpi \
  | small=14
error feedback                     | 4   | error_feedback=1 | ./short_floats bfloat16 Allreduce 3 \
  | compressed=14
END
# SLIMPI_VERIFY needs memory for the exact sum of 10241 floats, and for no bound.
scratch=$(($(report report.json memory scratch) + 4 * 10242))
different='fails; err 1+ SLIMPI_TYPES differs between the ranks of a communicator'
rows <<END
error feedback, verified   | 4 | error_feedback=1 verify=1 | ./short_floats bfloat16 Allreduce 3 \
  | compressed=14; memory.scratch=$scratch
# Noticed at the first sum of a type, also after one of a type that none has.
other types on one rank    | 3 | types=float 1?types=float,bfloat16 \
  | ./short_floats bfloat16 Allreduce 1 bfloat16 | $different
other types, float16 first | 3 | types=float 1?types=float,bfloat16 \
  | ./short_floats bfloat16 Allreduce 1 float16 | $different
an estimate                | 4 | types=float,bfloat16 estimate=$work/estimate.json \
  | ./short_floats bfloat16 Allreduce mpi
END
"$PYTHON" -c 'import json
rows = json.load(open("estimate.json"))["rows"]
print([(r["type"], r["reason"], r["calls"], round(r["bytes"]["plain"] / r["bytes"]["8"], 2))
       for r in rows])' >rows.txt
expect "$(cat rows.txt)" "[('bfloat16', None, 14, 1.97)]" "an estimate of 16-bit floats"

cat >numpy16.py <<'P'
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
x = (np.arange(50000) % 1000 / 10 + world.rank).astype(np.float16)
world.Allreduce(MPI.IN_PLACE, x)
assert np.max(np.abs(x - (np.arange(50000) % 1000 / 5 + 1))) < 1
assert all((x == other).all() for other in world.allgather(x))
P
if "$mpi_python" -c 'import mpi4py, numpy' 2>build.log; then
  rows <<END
NumPy's float16 | 2 | types=float,float16 | "$mpi_python" numpy16.py | types.float16.calls=1
END
fi
