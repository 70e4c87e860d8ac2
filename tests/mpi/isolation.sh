#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The program's communicators stay its own: wildcards see nothing, thousands of communicators come
# and go without growth, more of them live than slimpi can follow, and threads work side by side.
. "$top_srcdir/tests/helper/mpi.sh"
export UCX_LOG_LEVEL=error SLIMPI_REPORT=$work/report.json
program=$top_builddir/tests/mpi/isolation

for per_node in 1 2; do
  export SLIMPI_RANKS_PER_NODE=$per_node
  holds "wildcards, $per_node a node" under 4 "$program" wildcards
  expect "$(report report.json calls compressed)" 20 "wildcards, $per_node a node: compressed"
done
# ranks, of them a node, rounds, threads: threads side by side between nodes, inside one, and both
# at once. A round is two compressed sums of each thread.
while read -r ranks per_node rounds threads compressed; do
  export SLIMPI_RANKS_PER_NODE="$per_node"
  holds "$threads threads, $ranks ranks, $per_node a node" \
    under "$ranks" "$program" threads "$rounds" "$threads"
  expect "$(report report.json calls compressed)" "$compressed" \
    "$threads threads, $ranks ranks, $per_node a node: compressed"
done <<'E2'
2 1 4 3 24
2 2 4 3 0
3 2 2 3 12
2 1 3 6 36
E2
SLIMPI_RANKS_PER_NODE=2 SLIMPI_LOG=debug holds "six threads open segments at the same time" \
  under 3 "$program" threads 2 6 2>err.txt
expect "$(grep -c 'segment could not be made' err.txt)" 0 "and none at a second attempt"
export SLIMPI_RANKS_PER_NODE=1
# A sanitizer sees a race, or a leak, in any of the calls, and is slow.
lookups=2000000 made=10000
[ -z "$sanitizer" ] || lookups=20000 made=1000
holds "threads set options" under 2 "$program" lookup $lookups
expect "$(report report.json calls compressed) $(report report.json calls passed off)" "1 1" \
  "threads set options: each of its own communicator"
holds "$made communicators" under 2 "$program" many $made
expect "$(report report.json calls compressed)" $((made / 20)) "$made communicators: compressed"
SLIMPI_RANKS_PER_NODE=2 deeper \
  holds "10,000 communicators in one node" under 2 "$program" many 10000
holds "1,700 at once" under 2 "$program" live 1700
expect "$(report report.json calls compressed)" 65 \
  "1,700 at once: two sums of 32, and one when they are gone"
expect "$(report report.json calls passed failure)" 3336 "1,700 at once: the rest go to MPI"
