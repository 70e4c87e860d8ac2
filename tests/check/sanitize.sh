#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Addresses and undefined behaviour: unit tests and some MPI tests, built anew with the sanitizers.
. "$top_srcdir/tests/helper/sanitize.sh"
# shellcheck disable=SC2046
build yes base/precompiled.h.gch/program base/precompiled.h.gch/library \
  libslimpi.la slimpi-hwloc.la tests/helper/libyielding_ucx.la \
  tests/mpi/libfaults.la tests/mpi/golden tests/mpi/steps tests/mpi/feedback \
  tests/mpi/failures tests/mpi/sums tests/mpi/schedules tests/mpi/tensor_state \
  tests/mpi/powersgd $(unit_tests "$usual") || exit
# Requests for too much memory are part of the tests. Of MPI's own leaks nothing is said. After a
# failure MPI keeps what it may still read: the report, and the words of an agreement.
ASAN_OPTIONS=allocator_may_return_null=1
printf 'leak:slimpi::comm::%s\n' InternalComm::InternalComm Exchange::move_words >"$work/leaks.txt"
export LSAN_OPTIONS=suppressions=$work/leaks.txt
for test in $(unit_tests .); do
  runs "addresses: $test" env TEST_SEEDS=1:60 "$test"
done
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
scripts addresses one_node lifetimes feedback failures sums schedules tensor_state powersgd
