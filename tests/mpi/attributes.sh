#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The program's attributes are its own: the library's work copies and deletes none, and sums made
# inside their callbacks are right.
. "$top_srcdir/tests/helper/mpi.sh"
export UCX_LOG_LEVEL=error
program=$top_builddir/tests/mpi/attributes

# Callbacks are as many as in the plain program, and all sums are right.
for what in copy nested failing delete last "last once"; do
  # shellcheck disable=SC2086 # a word or two
  plain 3 "$program" $what >plain.txt || fail "$what without the library: exit status $?"
  for per_node in 1 3; do
    # shellcheck disable=SC2086
    SLIMPI_RANKS_PER_NODE=$per_node under 3 "$program" $what >under.txt ||
      fail "$what, $per_node a node: exit status $?"
    same plain.txt under.txt "$what, $per_node a node: callbacks as without the library"
  done
done
SLIMPI_RANKS_PER_NODE=1 SLIMPI_REPORT=$work/report.json under 3 "$program" copy >under.txt
expect "$(report report.json calls compressed)" 3 "the sums are compressed"
