#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The device row of GPU memory and its kernels, without a GPU: on the fake driver for CUDA's driver.
set -eu
: "${top_builddir:?is set by make check}"
if [ ! -e "$top_builddir/tests/fake_driver/libcuda.so.1" ]; then
  echo "SKIP the fake driver for CUDA's driver is not built"
  exit 77
fi
if [ ! -e "$top_builddir/tests/gpu/kernels" ]; then
  echo "SKIP CMocka was not found"
  exit 77
fi
export LD_LIBRARY_PATH="$top_builddir/tests/fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
for program in tests/device/cuda tests/device/cuda_context tests/gpu/kernels \
  "tests/gpu/bench --quick 3000"; do
  # The words of a line.
  # shellcheck disable=SC2086
  timeout -k 5 100 "$top_builddir"/$program
done
