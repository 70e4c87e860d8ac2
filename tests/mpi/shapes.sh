#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# slimpi_set_shape again and again, from threads, late, and on one rank alone.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
[ -e "$top_builddir/.libs/slimpi-blas.so" ] || skip "powersgd is not built"
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error SLIMPI_REPORT=$work/report.json
export SLIMPI_ALGORITHM=powersgd SLIMPI_MIN_SIZE=0
shapes=$top_builddir/tests/mpi/shapes
seconds=60

SLIMPI_START=4 holds "the same shape at every step" under 2 "$shapes" every
expect "$(report report.json calls compressed)" 16 "the same shape at every step: compressed"
expect "$(report report.json calls passed start)" 4 "the same shape at every step: exact at first"
export SLIMPI_START=0
holds "another shape later" under 2 "$shapes" change
expect "$(report report.json calls compressed)" 10 "another shape later: compressed"
holds "shapes from several threads" under 2 "$shapes" threads
expect "$(report report.json calls compressed)" 240 "shapes from several threads: compressed"
holds "a shape on one rank alone, corrected" under 2 "$shapes" corrected

status=0
under 3 "$shapes" alone >out.txt 2>err.txt || status=$?
holds "a shape on one rank alone: an error, no hang" test "$status" -ne 0 -a "$status" -ne 124
text="the shape of buffers of 6144 floats differs between the ranks.*: 64x96 on rank 0, 96x64 on"
expect "$(grep -c "error slimpi: $text rank 1" out.txt)" 15 "every rank gets it at every sum"
expect "$(grep -c "error: $text" err.txt)" 5 "and one rank says it"
verdict
