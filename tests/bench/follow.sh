#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# auto on two hosts whose link becomes a hundredth as fast during the run: what a call takes, and
# whether slimpi or MPI answers it, ten times a second. Run by `make bench`.
set -eu
library="$top_builddir/.libs/libslimpi.so" lab="$top_builddir/tools/slimpi-lab"

timeout -k 5 60 "$lab" --env "LD_PRELOAD=$library" --env SLIMPI_ALGORITHM=auto --hosts 2 \
  --rate 10gbit -- "$top_builddir/tests/bench/follow" 16384 4 &
run=$!
sleep 3
"$lab" --set-rate all=100mbit >/dev/null && echo "now 100 Mbit/s"
wait "$run" || [ $? = 77 ]
