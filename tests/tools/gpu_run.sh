#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# tests/gpu/run, as far as it goes without a GPU.
. "$top_srcdir/tests/helper/mpi.sh"
need "$PYTHON"
run() { "$PYTHON" "$top_srcdir/tests/gpu/run" "$@" >out.txt 2>err.txt; }

status=0
run --list || status=$?
expect "$status" 0 "--list works anywhere"
for step in unpack build kernels sums-4 memcheck-kernels bench-kernels end-to-end-2 train-2; do
  holds "there is a step $step" grep -qx $step out.txt
done
status=0
run --nonsense || status=$?
expect "$status" 2 "an unknown option"
status=0
run --pack || status=$?
expect "$status" 2 "packing wants a configured tree"
holds "and says so" grep -q 'wants a configured tree' err.txt

if ! nvidia-smi >/dev/null 2>&1; then
  status=0
  run || status=$?
  expect "$status" 77 "without a GPU it is skipped"
  expect "$(cat err.txt)" 'tests/gpu/run: there is no GPU here, or no CUDA driver: nothing to run' \
    "and says why"
fi
verdict
