#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The whole library with the part for GPU memory, where there is no GPU: on the stand-in for CUDA's
# driver, whose GPU runs the kernels of kernels/cuda on the CPU.
set -eu
: "${top_srcdir:?is set by make check}" "${top_builddir:?is set by make check}"
if [ ! -e "$top_builddir/tests/standin/libcuda.so.1" ]; then
  echo "SKIP the stand-in for CUDA's driver is not built"
  exit 77
fi
export LD_LIBRARY_PATH="$top_builddir/tests/standin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" CALLS=30
exec "$top_srcdir/tests/mpi/gpu.sh"
