#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Addresses and undefined behaviour: unit tests and some MPI tests, built anew with the sanitizers.
. "$top_srcdir/tests/helper/scripts/sanitize.sh"
scripts="values/one_node state/lifetimes state/feedback failures/failures values/sums
  state/tensor_state values/powersgd"
# shellcheck disable=SC2046
build yes base/precompiled.h.gch/program slimpi-hwloc.la $(unit_tests "$usual") || exit
# Some tests ask for too much memory. Leaks of MPI itself are not reported. After a failure slimpi
# keeps memory that MPI may still read: the report, and the words of an agreement.
ASAN_OPTIONS=allocator_may_return_null=1
printf 'leak:slimpi::comm::%s\n' InternalComm::InternalComm Exchange::move_words >"$work/leaks.txt"
export LSAN_OPTIONS=suppressions=$work/leaks.txt
for test in $(unit_tests .); do
  runs "addresses: $test" env TEST_SEEDS=1:60 "$test"
done
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
scripts addresses
