#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Exact sums of two and of four ranks of one node beside MPI's own and beside a copy of the buffer,
# which is their limit. Run by `make bench`.
set -eu
export UCX_LOG_LEVEL=error
for ranks in 2 4; do
  echo "$ranks ranks of one node"
  timeout -k 5 300 "${MPIEXEC:-mpiexec}" -n "$ranks" -genv LD_PRELOAD \
    "$top_builddir/.libs/libslimpi.so" "$top_builddir/tests/bench/node_limit" \
    4 16 48 64 128 256 512 1024 2048 4096 8192 16384 65536 262144
  echo
done
