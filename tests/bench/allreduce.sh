#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# bytegrad against MPI_Allreduce on this machine: slimpi-bench with two and four ranks, each called
# a node, so that what crosses a network elsewhere crosses this machine's memory here. Run by
# `make bench`.
set -eu
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error
for ranks in 2 4; do
  echo "$ranks ranks, each a node"
  timeout -k 5 300 "${MPIEXEC:-mpiexec}" -n "$ranks" -genv LD_PRELOAD \
    "$top_builddir/.libs/libslimpi.so" "$top_builddir/tools/slimpi-bench" \
    --size 64K,1M,16M,64M --algorithm bytegrad --bits 8,4
  echo
done
