#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A sum of more than 2^31 floats, which an int cannot count. It wants 20 GiB of free memory and a
# minute or more, so `make check` leaves it out:
#   make check TESTS=tests/mpi/values/huge.sh
# TEST_HUGE_COUNT sets another count.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
count=${TEST_HUGE_COUNT:-2147484648} # 2^31 + 1000
wanted=$((count * 4 / 1000 * 2 * 12 / 10)) # kB: both ranks' buffers and a fifth for messages
have=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
[ "$have" -ge "$wanted" ] || skip "$have kB of memory are free; $wanted kB are needed"
seconds=${MPI_TEST_SECONDS:-420}
export SLIMPI_RANKS_PER_NODE=1 SLIMPI_BITS=2 UCX_LOG_LEVEL=error SLIMPI_REPORT=$work/report.json
# A rank that needed more than that would be a defect, and must not take the machine with it.
ulimit -v $((wanted / 2 + 2000000))
status=0
under 2 "$top_builddir/tests/mpi/values/huge" "$count" "$SLIMPI_BITS" || status=$?
[ "$status" != 77 ] || skip "no memory"
expect "$status" 0 "$count floats"
expect "$(report report.json calls compressed)" 1 "they were compressed"
expect "$(report report.json bytes in)" $((2 * count * 4)) "bytes in, of both ranks"
