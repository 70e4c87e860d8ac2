#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Races of threads: some MPI tests, built anew with the sanitizer.
. "$top_srcdir/tests/helper/scripts/sanitize.sh"
scripts="calls/isolation state/lifetimes calls/nonblocking calls/progress"
build thread || exit
# MPI_Finalize holds a lock that MPI takes elsewhere while a communicator is made, which no thread
# does by then.
echo 'deadlock:slimpi::call::Runtime::finish' >"$work/suppressions.txt"
TSAN_OPTIONS=$TSAN_OPTIONS:suppressions=$work/suppressions.txt
export MPI_TEST_SECONDS=240
scripts threads
