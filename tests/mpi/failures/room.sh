#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The library's own use of MPI does not disturb the program: it finds room for as many communicators
# as without the library, but for a handful, and its error handlers run as often.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
export UCX_LOG_LEVEL=error SLIMPI_REPORT=$work/report.json
program=$top_builddir/tests/mpi/calls/isolation

holds "all without the library" plain 2 "$program" all >plain.txt
# A handle that was freed is a pointer to freed memory in Open MPI.
freed=freed
if mpi_dies 2 "$program" freed; then freed=''; fi
had=$(sed -n 's/ communicators$//p' plain.txt)
for per_node in 1 2; do
  export SLIMPI_RANKS_PER_NODE=$per_node
  holds "all, $per_node a node" under 2 "$program" all >under.txt
  has=$(sed -n 's/ communicators$//p' under.txt)
  holds "all, $per_node a node: $has communicators of $had" test "${has:-0}" -ge "$((had - 40))"
  for what in full full_threads handler $freed; do
    holds "$what, $per_node a node" under 2 "$program" "$what"
  done
done
export SLIMPI_RANKS_PER_NODE=1
# The first sums are nonblocking: slimpi serves 32 communicators, and MPI has room for as many as
# without it.
by_way nonblocking
export SLIMPI_PROGRESS=thread
holds "nonblocking, all" under 2 "$program" all >under.txt
has=$(sed -n 's/ communicators$//p' under.txt)
holds "nonblocking: $has communicators of $had" test "${has:-0}" -ge "$((had - 40))"
expect "$(report report.json calls compressed)" 33 "nonblocking: 32 are served, and a later one"
expect "$(report report.json calls passed failure)" 273 "nonblocking: other sums go to MPI"
holds "nonblocking, without room" under 2 "$program" full
by_way blocking
unset SLIMPI_PROGRESS
holds "full" under 2 "$program" full
wanted=2
[ "$had" -lt 4096 ] || wanted=5 # an MPI with room for all that the program makes
expect "$(report report.json calls compressed)" $wanted "full: compressed when there is room"
holds "handler" under 2 "$program" handler
expect "$(report report.json calls compressed)" 20 "handler: compressed"
