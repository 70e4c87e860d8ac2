#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# slimpi_describe_next with a matrix: again and again, from threads, late, and on one rank alone;
# and the arguments that slimpi_describe_next refuses.
. "$top_srcdir/tests/helper/mpi.sh"
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

SLIMPI_POWERSGD_SHAPES=6144=64x96 under 2 "$shapes" refused 2>err.txt ||
  fail "refused: $(cat err.txt)"
while read -r text; do
  expect "$(grep -c "warning: slimpi_$text" err.txt)" 2 "each rank says once: $text"
done <<'END'
describe_next: size is 0; set it to sizeof(slimpi_tensor_t)
describe_next: matrices is NULL where matrix_count is 2;
describe_next: matrix 1 is 5 x 0;
describe_next: matrix 0 is 8589934592 x 8589934592;
describe_next: the matrices of a sum of 6144 floats have more than that, so they are ignored
END
expect "$(grep -c warning err.txt)" 10 "and nothing else"

status=0
under 3 "$shapes" alone >out.txt 2>err.txt || status=$?
holds "a shape on one rank alone: an error, no hang" test "$status" -ne 0 -a "$status" -ne 124
text="the shape of buffers of 6144 floats differs between the ranks.*: 64x96 on rank 0, 96x64 on"
expect "$(grep -c "error slimpi: $text rank 1" out.txt)" 15 "every rank gets it at every sum"
expect "$(grep -c "error: $text" err.txt)" 5 "and one rank says it"
