#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The tree built anew with the sanitizers of addresses and undefined behaviour, and with that of
# threads; unit tests and some MPI tests in each, and valgrind on the usual build. A build compiles
# only what its tests need, and the tests run in the depth of the first tier.
# TEST_SANITIZE names what to do: address thread valgrind.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
[ ! -e "$top_srcdir/config.status" ] || skip "the source directory is configured itself"
unset MAKEFLAGS MFLAGS MAKELEVEL
# UCX replaces functions of the C library that the sanitizers replace, too.
export LD_LIBRARY_PATH ASAN_OPTIONS TSAN_OPTIONS=exitcode=66 UCX_MEM_EVENTS=no
usual=$top_builddir
export RUN_EXPENSIVE_TESTS=no

build() { # KIND TARGET...: of --enable-sanitizers; leaves the test in its directory
  mkdir "$work/$1"
  cd "$work/$1" || return 1
  top_builddir=$work/$1 LD_LIBRARY_PATH=$work/$1/.libs kind=$1
  shift
  # Sanitized code brings warnings of its own.
  # shellcheck disable=SC2086
  { "$top_srcdir/configure" --enable-sanitizers="$kind" --without-cuda \
    CXXFLAGS="-O1 -g1 -Wno-error" && make -j2 $words "$@"; } >build.txt 2>&1 && return 0
  tail -n 20 build.txt
  fail "a build with --enable-sanitizers=$kind"
  return 1
}

# What the sanitizers and valgrind say, and the checks that failed.
complaints() {
  grep -E -A 12 '^FAIL|ERROR: (Addr|Leak)|runtime error|WARNING: Thread|^==[0-9]+== [A-Z]' "$1" |
    head -n 60 || :
}

runs() { # WHAT COMMAND...: it succeeds
  runs=$1 status=0
  shift
  "$@" >"$work/output.txt" 2>&1 || status=$?
  [ "$status" = 0 ] || complaints "$work/output.txt"
  expect "$status" 0 "$runs"
}

scripts() { # WHAT NAME...: tests/mpi/NAME.sh pass in the build at hand
  scripts=$1
  shift
  for name in "$@"; do
    runs "$scripts: tests/mpi/$name.sh" sh "$top_srcdir/tests/mpi/$name.sh"
  done
}

# Those that handle memory.
# shellcheck disable=SC2016
unit_tests() { # DIRECTORY with a Makefile
  echo 'include Makefile
units: ; @echo $(filter-out %_random %/stochastic %/float16, $(filter tests/algorithm/% \
  tests/base/% tests/call/% tests/comm/% tests/inter/schedule% tests/intra/% tests/kernels/% \
  tests/mpi/%, $(unit_tests)))' | make -s -C "$1" -f - units
}

for kind in ${TEST_SANITIZE:-address thread valgrind}; do
  top_builddir=$usual
  case $kind in
    address)
      words=
      # shellcheck disable=SC2046
      build yes base/precompiled.h.gch/program base/precompiled.h.gch/library \
        libslimpi.la slimpi-hwloc.la tests/helper/libyielding_ucx.la \
        tests/mpi/libfaults.la tests/mpi/one_node tests/mpi/steps tests/mpi/feedback \
        tests/mpi/failures tests/mpi/sums tests/mpi/schedules tests/mpi/tensor_state \
        tests/mpi/powersgd $(unit_tests "$usual") || continue
      # Requests for too much memory are part of the tests. Of MPI's own leaks nothing is said.
      ASAN_OPTIONS=allocator_may_return_null=1
      for test in $(unit_tests .); do
        runs "addresses: $test" env TEST_SEEDS=1:60 "$test"
      done
      ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
      scripts addresses one_node lifetimes feedback failures sums schedules tensor_state powersgd
      ;;
    thread)
      words=PRECOMPILED= # each file includes what it uses
      build thread libslimpi.la tests/helper/libyielding_ucx.la tests/mpi/isolation \
        tests/mpi/steps tests/mpi/progress tests/mpi/nonblocking tests/mpi/nonblocking_errors \
        tests/mpi/nonblocking_threads || continue
      # MPI_Finalize holds a lock that MPI takes elsewhere while a communicator is made, which no
      # thread does by then.
      echo 'deadlock:slimpi::call::Runtime::finish' >"$work/suppressions.txt"
      TSAN_OPTIONS=$TSAN_OPTIONS:suppressions=$work/suppressions.txt
      export MPI_TEST_SECONDS=240
      scripts threads isolation lifetimes nonblocking progress
      ;;
    valgrind)
      need valgrind
      for test in float16 quantizer stochastic sums; do
        runs "valgrind: tests/kernels/$test" \
          valgrind -q --error-exitcode=9 "$usual/tests/kernels/$test"
      done
      export SLIMPI_RANKS_PER_NODE=1 SLIMPI_MIN_SIZE=0
      for row in "bytegrad 8 2048 nearest 1 0" "qsgd 3 512 stochastic 1 1"; do
        # shellcheck disable=SC2086
        set -- $row
        export SLIMPI_ALGORITHM="$1" SLIMPI_BITS="$2" SLIMPI_BUCKET="$3"
        runs "valgrind: sums, $row" under 2 \
          valgrind -q --error-exitcode=9 "$usual/tests/mpi/sums" "$@" 0 small
      done
      unset SLIMPI_RANKS_PER_NODE SLIMPI_MIN_SIZE SLIMPI_ALGORITHM SLIMPI_BITS SLIMPI_BUCKET
      ;;
    *) fail "TEST_SANITIZE has no $kind" ;;
  esac
done
verdict
