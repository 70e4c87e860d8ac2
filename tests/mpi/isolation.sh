#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The program's communicators stay its own: wildcards see nothing, thousands of communicators come
# and go without growth, more of them live than slimpi can follow, and threads work side by side.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
export UCX_LOG_LEVEL=error SLIMPI_REPORT=$work/report.json
program=$top_builddir/tests/mpi/isolation

for per_node in 1 2; do
  export SLIMPI_RANKS_PER_NODE=$per_node
  holds "wildcards, $per_node a node" under 4 "$program" wildcards
  expect "$(report report.json calls compressed)" 20 "wildcards, $per_node a node: compressed"
  holds "threads, $per_node a node" under 3 "$program" threads
  holds "threads, $per_node a node: compressed" \
    test "$(report report.json calls compressed)" -eq $((4 * 12 * 2))
done
export SLIMPI_RANKS_PER_NODE=1
holds "10,000 communicators" under 2 "$program" many 10000
expect "$(report report.json calls compressed)" 500 "10,000 communicators: compressed"
SLIMPI_RANKS_PER_NODE=2 holds "10,000 communicators in one node" under 2 "$program" many 10000
holds "1,400 at once" under 2 "$program" live
holds "1,400 at once: the first are compressed, the rest go to MPI" \
  test "$(report report.json calls compressed)" -ge 500 -a \
  "$(report report.json calls passed failure)" -ge 100
verdict
