#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Exact sums of two and of four ranks of one node beside MPI's own and beside a copy of the buffer,
# which is their limit; what their steps take, by the trace; then sums whose result is read. Run by
# `make bench`.
set -eu
export UCX_LOG_LEVEL=error
run() { # RANKS PROGRAM WORD...
  ranks=$1 program=$2
  shift 2
  echo "$ranks ranks of one node, $program"
  timeout -k 5 300 "${MPIEXEC:-mpiexec}" -n "$ranks" -genv LD_PRELOAD \
    "$top_builddir/.libs/libslimpi.so" "$top_builddir/tests/bench/$program" "$@"
  echo
}
run 2 node_limit 400 4 16 48 64 128 256 512 1024 2048 4096 8192 16384 65536 262144
run 4 node_limit 20 64 256 1024 4096 16384 65536
traces=$(mktemp -d)
trap 'rm -rf "$traces"' EXIT
for size in 64 256 1024 4096 16384; do
  SLIMPI_TRACE=$traces/t run 2 node_limit 200 $size
  "$top_builddir/tools/slimpi-trace" --waits 0 "$traces"/t.* | sed -n '/^Steps/,/^$/p'
done
export SLIMPI_INTRA=shm
run 2 sum_and_read 1024 2048 4096 8192 16384
