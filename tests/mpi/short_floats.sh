#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# 16-bit floats by SLIMPI_TYPES, under MPICH 5, which has them: every way to make a sum, which sums
# are left to MPI, and that nothing changes under an MPI without them. Others: every_mpi.sh.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_LOG=info SLIMPI_TYPES=float,float16 UCX_LOG_LEVEL=error SLIMPI_BITS=8
SLIMPI_RANKS_PER_NODE=1 under 2 "$top_builddir/tests/mpi/steps" init sum:100000 finalize \
  >out.txt 2>err.txt || { fail "a sum of floats" && cat err.txt; }
if grep -q 'MPICH Version: *4\.0' err.txt; then
  holds "what this MPI has not is said" grep -q 'SLIMPI_TYPES names float16, which' err.txt
fi
unset SLIMPI_LOG

. "$top_srcdir/tests/mpis/mpich5"
MPIEXEC=$mpi_launcher
[ -x "$mpi_launcher" ] || skip "MPICH 5 is not here"
$mpi_c -I"$top_srcdir" -I"$top_srcdir/include" -O1 -o short_floats \
  "$top_srcdir/tests/mpi/short_floats.c" -lm
export SLIMPI_REPORT=$work/report.json SLIMPI_TYPES=float,float16,bfloat16 SLIMPI_MIN_SIZE=0
export SLIMPI_RANKS_PER_NODE=1

# sums COUNT TYPE WAY BOUND KEY...: of the 14 sums COUNT are in the report under these keys
sums() {
  wanted=$1 type=$2 way=$3 bound=$4
  shift 4
  rm -f report.json
  under 4 ./short_floats "$type" "$way" "$bound" >out.txt || { fail "$what: $?" && cat out.txt; }
  expect "$(cut -d , -f 1 <out.txt), $(report report.json "$@")" "14 sums, $wanted" \
    "$what: $type, $way"
}
what="taken"
sums 14 float16 Allreduce 1 types float16 calls
mv out.txt float16.txt
sums 14 bfloat16 Allreduce 1 types bfloat16 calls
mv out.txt bfloat16.txt
sums 14 real2 Allreduce 1 types float16 calls
same float16.txt out.txt "MPI_REAL2 is float16"
for type in float16 bfloat16; do
  for way in Iallreduce Allreduce_init large; do
    expensive || [ $type = float16 ] || continue
    sums 14 $type $way 1 types $type calls
    same $type.txt out.txt "$type, $way: the bytes of blocking calls"
  done
done
what="gathered"
export SLIMPI_CALLS=allreduce,allgather
sums 14 float16 Allgatherv .13 types float16 calls
sums 14 bfloat16 Iallgatherv .13 types bfloat16 calls
unset SLIMPI_CALLS
what="two ranks a node"
SLIMPI_RANKS_PER_NODE=2 SLIMPI_VERIFY=1 sums 14 float16 Allreduce 1 calls compressed
holds "the error is that of what the program gets" \
  awk "BEGIN { e = $(report report.json error max_rel_l2); exit !(e > 1e-4 && e < 0.02) }"
expect "$(report report.json bytes plain)" $((14 * 2 * 2 * 10241)) "MPI would send 2 bytes a value"

what="error feedback"
export SLIMPI_ERROR_FEEDBACK=1
sums 14 bfloat16 Allreduce 3 calls compressed
scratch=$(report report.json memory scratch)
SLIMPI_VERIFY=1 sums 14 bfloat16 Allreduce 3 calls compressed
expect "$(($(report report.json memory scratch) - scratch))" $((4 * 10242)) \
  "SLIMPI_VERIFY needs memory for the exact sum of 10241 floats, and for no bound"
unset SLIMPI_ERROR_FEEDBACK
if expensive; then
  what=qsgd
  SLIMPI_ALGORITHM=qsgd sums 14 float16 Allreduce 2 calls compressed
  what="a bound of the error"
  SLIMPI_MAX_ERROR=0.05 sums 14 float16 Allreduce 8 types float16 calls
  what="powersgd, but for what is not finite"
  SLIMPI_ALGORITHM=powersgd SLIMPI_START=0 sums 13 float16 Iallreduce any algorithms powersgd \
    calls
  what="replicas, but for what is not finite"
  SLIMPI_ALGORITHM=low_precision_decentralized sums 13 float16 Allreduce any types float16 calls
fi

for type in float16 bfloat16; do
  what="in rank order, rounded once"
  SLIMPI_ALGORITHM=allreduce SLIMPI_HIERARCHY=flat SLIMPI_RANKS_PER_NODE=2 \
    sums 14 $type Allreduce 0 types $type calls
done

# A sum that would not become shorter is left to MPI.
left="ALGORITHM=fp16 TYPES=float,double"
if expensive; then
  left="$left ALGORITHM=bf16 ALGORITHM=allreduce ALGORITHM=decentralized MAX_ERROR=1e-5 BITS=16"
fi
for what in $left; do
  export "SLIMPI_$what"
  sums 14 float16 Allreduce mpi calls passed datatype
  sums 14 bfloat16 Iallreduce mpi calls passed datatype
  unset "SLIMPI_${what%%=*}"
  export SLIMPI_TYPES=float,float16,bfloat16
done
what="one node"
SLIMPI_RANKS_PER_NODE=4 sums 14 bfloat16 Allreduce mpi calls passed single_node
what="the least size"
SLIMPI_MIN_SIZE=20483 sums 14 float16 Allreduce mpi calls passed small

# Ranks with other types: noticed at the first sum of one, also after one of a type that none has.
for first in bfloat16 float16; do
  export SLIMPI_TYPES=float
  status=0
  under 3 "$top_srcdir/tests/helper/on_rank.sh" 1 SLIMPI_TYPES=float,bfloat16 \
    ./short_floats bfloat16 Allreduce 1 $first >out.txt 2>err.txt || status=$?
  holds "other types on one rank, first $first: fails" test $status -ne 0 -a $status -ne 124
  holds "other types on one rank, first $first: said" \
    grep -q 'SLIMPI_TYPES differs between the ranks of a communicator' err.txt
done

unset SLIMPI_REPORT SLIMPI_TYPES
SLIMPI_TYPES=float,bfloat16 SLIMPI_ESTIMATE=$work/estimate.json \
  under 4 ./short_floats bfloat16 Allreduce mpi >out.txt || fail "an estimate"
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
  SLIMPI_TYPES=float,float16 SLIMPI_REPORT=$work/report.json under 2 "$mpi_python" numpy16.py ||
    fail "NumPy's float16"
  expect "$(report report.json types float16 calls)" 1 "NumPy's float16 is taken"
fi
