#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Values that were never written: the kernels and some sums in valgrind, of the usual build.
. "$top_srcdir/tests/helper/scripts/sanitize.sh"
need valgrind
for test in float16 packed quantizer stochastic sums; do
  runs "tests/kernels/$test" \
    valgrind -q --error-exitcode=9 "$usual/tests/kernels/$test"
done
export SLIMPI_RANKS_PER_NODE=1 SLIMPI_MIN_SIZE=0
for row in "bytegrad 8 2048 nearest 1 0" "qsgd 3 512 stochastic 1 1"; do
  # shellcheck disable=SC2086
  set -- $row
  export SLIMPI_ALGORITHM="$1" SLIMPI_BITS="$2" SLIMPI_BUCKET="$3"
  runs "sums, $row" under 2 \
    valgrind -q --error-exitcode=9 "$usual/tests/mpi/values/sums" "$@" 0 small
done
