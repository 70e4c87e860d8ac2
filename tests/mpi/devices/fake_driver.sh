#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The whole library with the CUDA plugin, where there is no GPU: on the fake driver, whose GPU runs
# the kernels of kernels/cuda on the CPU.
set -eu
: "${top_srcdir:?is set by make check}" "${top_builddir:?is set by make check}"
if [ ! -e "$top_builddir/tests/fake_driver/libcuda.so.1" ]; then
  echo "SKIP the fake driver is not built"
  exit 77
fi
export LD_LIBRARY_PATH="$top_builddir/tests/fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export CALLS=30
exec "$top_srcdir/tests/mpi/devices/gpu.sh"
