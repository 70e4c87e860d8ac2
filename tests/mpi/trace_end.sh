#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The end of a trace: of all ranks in one file, on one rank alone; and the report that
# MPI_Pcontrol(2) writes on one rank alone.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error
steps=$top_builddir/tests/mpi/steps on_rank=$top_srcdir/tests/helper/on_rank.sh
nests=$top_srcdir/tests/helper/nests.py
seconds=30

ranks() { # FILE: which ranks have slices
  "$PYTHON" -c 'import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
print(*sorted({e["pid"] for e in events if e["ph"] == "X"}))' "$1"
}

SLIMPI_TRACE=$work/all.json under 3 "$steps" init sum:100000 finalize >out.txt || fail "a trace"
expect "$(ranks all.json)" "0 1 2" "all ranks in one file"
holds "slices nest" "$PYTHON" "$nests" all.json
for rank in 1 2; do
  under 3 "$on_rank" $rank "SLIMPI_TRACE=$work/$rank.json" "$steps" init sum:100000 finalize \
    >out.txt || fail "a trace on rank $rank alone"
  expect "$(ranks $rank.json)" $rank "a trace on rank $rank alone"
done

for rank in 0 1; do
  SLIMPI_REPORT=stderr under 2 "$steps" init sum:100000 "$rank?pcontrol:2" sum:100000 finalize \
    >out.txt 2>err.txt || fail "MPI_Pcontrol(2) on rank $rank alone: exit status $?"
  expect "$(grep -o '[0-9] compressed' err.txt | tail -n 1)" "2 compressed" \
    "MPI_Pcontrol(2) on rank $rank alone: the report at the end"
done
verdict
