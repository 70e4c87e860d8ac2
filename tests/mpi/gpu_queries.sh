#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A call that is left to MPI asks CUDA's driver once whose each of its buffers is, and not at all
# about the heap, static data and the stack.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
[ -e "$top_builddir/tests/fake_driver/libcuda.so.1" ] || skip "the fake driver is not built"
export LD_LIBRARY_PATH="$top_builddir/tests/fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SLIMPI_MIN_SIZE=0
holds "one query of two attributes for each buffer and call" \
  under 2 "$top_builddir/tests/gpu/queries"
verdict
