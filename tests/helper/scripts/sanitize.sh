# SPDX-License-Identifier: BSD-3-Clause
# For tests of the tree built anew with a sanitizer, and for valgrind on the usual build. A build
# compiles only what its tests need, and the tests run in the depth of the first tier.
#   build KIND TARGET...      of --enable-sanitizers, and what the $scripts need; leaves the test in
#                             its directory
#   runs WHAT COMMAND...      checks that it succeeds
#   scripts WHAT              checks that the scripts of tests/mpi that $scripts names pass in the
#                             build at hand
#   unit_tests DIRECTORY      names those that handle memory, of the Makefile there
. "$top_srcdir/tests/helper/scripts/mpi.sh"
[ ! -e "$top_srcdir/config.status" ] || skip "the source directory is configured itself"
unset MAKEFLAGS MFLAGS MAKELEVEL
# UCX replaces functions of the C library that the sanitizers replace, too.
export LD_LIBRARY_PATH ASAN_OPTIONS TSAN_OPTIONS=exitcode=66 UCX_MEM_EVENTS=no
usual=$top_builddir
export RUN_EXPENSIVE_TESTS=no

build() {
  mkdir "$work/$1"
  cd "$work/$1" || return 1
  top_builddir=$work/$1 LD_LIBRARY_PATH=$work/$1/.libs kind=$1
  shift
  # shellcheck disable=SC2046 # words
  set -- base/precompiled.h.gch/library libslimpi.la "$@" \
    $(sh "$top_srcdir/tests/helper/scripts/programs_of.sh" $(paths))
  # Sanitized code brings warnings of its own.
  { "$top_srcdir/configure" --enable-sanitizers="$kind" --without-cuda \
    CXXFLAGS="-O1 -g1 -Wno-error" && make -j2 "$@"; } >build.txt 2>&1 && return 0
  tail -n 20 build.txt
  fail "a build with --enable-sanitizers=$kind"
  return 1
}

# Prints what the sanitizers and valgrind say, and the checks that failed.
complaints() {
  grep -E -A 12 '^FAIL|ERROR: (Addr|Leak)|runtime error|WARNING: Thread|^==[0-9]+== [A-Z]' "$1" |
    head -n 60 || :
}

runs() {
  runs=$1 status=0
  shift
  "$@" >"$work/output.txt" 2>&1 || status=$?
  [ "$status" = 0 ] || complaints "$work/output.txt"
  expect "$status" 0 "$runs"
}

paths() { for name in $scripts; do echo "tests/mpi/$name.sh"; done; }

scripts() {
  for path in $(paths); do runs "$1: $path" sh "$top_srcdir/$path"; done
}

# Tests that handle memory.
# shellcheck disable=SC2016
unit_tests() { # DIRECTORY with a Makefile
  echo 'include Makefile
units: ; @echo $(filter-out %_random %/stochastic %/float16, $(filter tests/algorithm/% \
  tests/base/% tests/call/% tests/comm/% tests/inter/schedule% tests/intra/% tests/kernels/% \
  tests/mpi/%, $(unit_tests)))' | make -s -C "$1" -f - units
}
