#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Nonblocking sums of 64 MiB beside 200 ms of computation, on hosts of slimpi-lab with a rank each,
# at 1 Gbit/s. Run by `make bench`; nothing where namespaces are not allowed.
# Usage: overlap.sh [ROUNDS [HOSTS]] (7 rounds, 4 hosts)
set -eu
library="$top_builddir/.libs/libslimpi.so"

timeout -k 5 200 "$top_builddir/tools/slimpi-lab" --env "LD_PRELOAD=$library" \
  --env SLIMPI_ALGORITHM=bytegrad --hosts "${2:-4}" --rate 1gbit -- \
  "$top_builddir/tests/bench/overlap" 64 200 "${1:-7}" || [ $? = 77 ]
