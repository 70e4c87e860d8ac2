#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Where the time goes in 8-bit sums of 64 MiB over two hosts at 10 Gbit/s: tables by library and by
# function, profile.svg, a flame graph, and profile.json, the trace of the same run. Needs perf.
#   top_builddir=. sh tests/bench/profile.sh
set -eu
: "${top_builddir:=.}" "${top_srcdir:=$(dirname "$0")/../..}"
command -v perf >/dev/null || { echo "perf is not installed (Debian: linux-perf)"; exit 77; }
data=$(mktemp) || exit 99
trap 'rm -f "$data"*' EXIT
timeout -k 5 60 "$top_builddir/tools/slimpi-lab" --hosts 2 --rate 10gbit \
  --env "LD_PRELOAD=$top_builddir/.libs/libslimpi.so" --env "SLIMPI_TRACE=$data.trace" -- \
  "$top_builddir/tests/bench/follow" 16777216 6 &
run=$!
sleep 3
perf record -q -a -F 999 --call-graph dwarf,4096 -o "$data" sleep 2
wait "$run"
for columns in comm,dso dso,symbol; do
  perf report -i "$data" --no-children -g none --sort "$columns" 2>/dev/null |
    sed '/^#/d; s/  *- *- *$//; /^$/d' | head -25
  echo
done
perf script -i "$data" --no-inline -F comm,ip,sym,dso 2>/dev/null |
  "${PYTHON:-python3}" "$top_srcdir/tests/bench/flame.py" >profile.svg
"$top_builddir/tools/slimpi-trace" --merge profile.json "$data".trace.*
echo "profile.svg, profile.json"
