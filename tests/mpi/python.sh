#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# mpi4py, which loads MPI with RTLD_LOCAL: sums as they must be, with and without the library.
. "$top_srcdir/tests/helper/mpi.sh"
. "$top_srcdir/tests/helper/mpi4py.sh"
alike "mpi4py" 5 4 "$python" "$top_srcdir/tests/programs/sums.py"
SLIMPI_RANKS_PER_NODE=1 SLIMPI_REPORT=$work/nonblocking.json \
  holds "nonblocking and persistent sums" under 3 "$python" \
  "$top_srcdir/tests/programs/nonblocking.py"
expect "$(report nonblocking.json calls compressed)" 11 "nonblocking and persistent: taken over"
