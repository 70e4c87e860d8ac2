#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs what nvcc makes of the kernels in an interpreter of PTX, and compares with the host's bytes:
# for the newest and the oldest GPU of the build. It is an interpreter, not hardware: ptxas has no
# part in it. Skips (77) without nvcc.
set -eu
. "${top_srcdir:?is set by make check}/tests/helper/ptx.sh"
"$top_builddir/tests/ptx/interpreter"
for target in $(echo "$targets" | sed -n '1p;$p' | uniq); do
  make_ptx "$target" "$work/$target"
  echo "$target"
  run_ptx "$work/$target"
done
