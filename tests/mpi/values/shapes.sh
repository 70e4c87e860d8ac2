#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# slimpi_describe_next with a matrix: again and again, from threads, late, and on one rank alone;
# and the arguments that slimpi_describe_next refuses.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error SLIMPI_ALGORITHM=powersgd SLIMPI_MIN_SIZE=0
export SLIMPI_START=0
seconds=60
says="err 2 warning: slimpi_describe_next:"
unlike="the shape of buffers of 6144 floats differs between the ranks.*: 64x96 on rank 0, 96x64 on"

# `refused` warns once on each rank. In `alone` every rank gets the error at every sum, and one rank
# says it.
rows <<END
the same shape at every step   | 2 | start=4 | shapes every | compressed=16; start=4
another shape later            | 2 |         | shapes change | compressed=10
shapes from several threads    | 2 |         | shapes threads | compressed=240
a shape on one rank, corrected | 2 |         | shapes corrected
refused                        | 2 | powersgd_shapes=6144=64x96 | shapes refused \
  | err 10 warning; $says size is 0. set it to sizeof(slimpi_tensor_t); \
    $says matrices is NULL where matrix_count is 2.; $says matrix 1 is 5 x 0.; \
    $says matrix 0 is 8589934592 x 8589934592.; \
    $says the matrices of a sum of 6144 floats have more than that, so they are ignored
a shape on one rank alone      | 3 |         | shapes alone \
  | fails; out 15 error slimpi: $unlike rank 1; err 5 error: $unlike
END
