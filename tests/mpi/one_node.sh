#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Ranks on one node: the bytes are MPI's own, through shared memory and by MPI, each counted as what
# it is.
. "$top_srcdir/tests/helper/mpi.sh"
need_library

if expensive; then all='2 3 4 5 6'; else all='2 3 5'; fi
for ranks in $all; do
  for intra in auto shm mpi; do
    if [ $ranks != 3 ] && [ $intra != shm ] && ! expensive; then continue; fi
    rm -f report.json
    SLIMPI_INTRA=$intra SLIMPI_RANKS_PER_NODE=8 SLIMPI_REPORT=$work/report.json SLIMPI_LOG=debug \
      under "$ranks" "$top_builddir/tests/mpi/one_node" >out.txt 2>err.txt ||
      fail "$ranks ranks, $intra"
    cat out.txt
    grep -v ' debug: ' err.txt || :
    expect "$(report report.json calls compressed)" 0 "$ranks ranks, $intra: nothing compressed"
    exact=$(report report.json calls exact_in_node)
    expect $((exact + $(report report.json calls passed single_node))) 26 \
      "$ranks ranks, $intra: exact in the node, or passed"
    if [ "$intra" = mpi ]; then
      expect "$exact" 0 "$ranks ranks, $intra: all passed"
    elif [ "$intra" != auto ] && ! adds_otherwise err.txt; then
      # auto tries MPI first, and this program is short
      holds "$ranks ranks, $intra: $exact exact in the node" test "$exact" -gt 0
    fi
  done
done
verdict
