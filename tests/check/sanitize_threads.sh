#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Races of threads: some MPI tests, built anew with the sanitizer.
. "$top_srcdir/tests/helper/sanitize.sh"
build thread base/precompiled.h.gch/library libslimpi.la tests/helper/libyielding_ucx.la \
  tests/mpi/isolation tests/mpi/steps tests/mpi/progress tests/mpi/nonblocking \
  tests/mpi/nonblocking_protected tests/mpi/nonblocking_errors tests/mpi/nonblocking_threads \
  tools/slimpi-info || exit
# MPI_Finalize holds a lock that MPI takes elsewhere while a communicator is made, which no thread
# does by then.
echo 'deadlock:slimpi::call::Runtime::finish' >"$work/suppressions.txt"
TSAN_OPTIONS=$TSAN_OPTIONS:suppressions=$work/suppressions.txt
export MPI_TEST_SECONDS=240
scripts threads isolation lifetimes nonblocking progress
