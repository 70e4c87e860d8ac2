#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# No exception crosses an MPI entry point, and a rank that has no memory for something small ends
# the job with one line, so that no other rank waits. One of slimpi's allocations fails, from the
# first one on a new communicator on.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
export SLIMPI_ALGORITHM=bytegrad  # the default, but chosen: no line about rounding
: "${CXX:=g++}"
need "${CXX%% *}"
program=$top_builddir/tests/mpi/failures/exceptions
seconds=60
export SLIMPI_RANKS_PER_NODE=1 SLIMPI_MIN_SIZE=0 UCX_LOG_LEVEL=error
# A sanitizer has allocation functions of its own.
[ -z "$sanitizer" ] || skip "the sanitizer's allocation functions stand in the way"
without=$preload preload=$preload:$top_builddir/tests/helper/.libs/liballocations.so

# returns WHAT RANKS RANK MORE COUNT N...: the program, with the options in the environment. Each N
# has a sum or an error, and the job continues.
returns() {
  returns=$1 ranks=$2
  shift 2
  shows "$returns: every call returns, with a sum or an error" under "$ranks" "$program" "$@"
  holds "$returns: nothing is wrong" test -z "$(grep WRONG out.txt)"
}

# ends WHAT RANKS RANK MORE COUNT N...: a job for each N. It ends with one line, or continues.
ends() {
  ended="$1" ranks=$2 rank=$3 more=$4 count=$5
  shift 5
  for number in "$@"; do
    what="$ended, $number" status=0
    under "$ranks" "$program" "$rank" "$more" "$count" "$number" >out.txt 2>err.txt || status=$?
    if [ "$status" != 0 ]; then
      expect "$status $(grep -c 'slimpi.* error: .*no host memory' err.txt)" "2 1" \
        "$what: the job ends, and one line says why"
    fi
    holds "$what: nothing is wrong" test -z "$(grep WRONG out.txt)"
  done
}

# sweep WHAT RANKS RANK MORE COUNT LAST: the allocations of the first call. Up to number LAST the
# ranks may have no communicator to tell a failure, so the job may end; beyond it continues.
every=11
if expensive; then every=1; fi
sweep() {
  # Lists of numbers.
  # shellcheck disable=SC2046
  ends "$1" "$2" "$3" "$4" "$5" $(seq 1 "$every" "$6")
  for first in 1 2 3; do
    # shellcheck disable=SC2046
    returns "$1, from the $first. on" "$2" "$3" "$4" "$5" $(seq $(($6 + first)) 3 $(($6 + 30)))
  done
}

sweep "bytegrad, rank 0" 2 0 0 20000 92
ends "bytegrad, rank 1 from there on" 2 1 1000000 20000 1 4 16 40
returns "bytegrad, rank 1 from there on" 2 1 1000000 20000 93 96 100
# The ranks meet in the first sum, which is nonblocking.
export TEST_NONBLOCKING=1
sweep "nonblocking, rank 0" 2 0 0 20000 59
sweep "nonblocking, rank 1" 2 1 0 20000 59
# The second sum begins without memory, too.
ends "nonblocking, rank 1 from there on" 2 1 1000000 20000 8 21 29 40 70
unset TEST_NONBLOCKING
export SLIMPI_ERROR_FEEDBACK=1
ends "error feedback, all ranks" 2 -1 0 20000 1 10 30 50
returns "error feedback, all ranks" 2 -1 0 20000 93 96 100
unset SLIMPI_ERROR_FEEDBACK
export SLIMPI_RANKS_PER_NODE=2
ends "two nodes of two, all ranks" 4 -1 0 20000 15 29 43
# shellcheck disable=SC2046
ends "one node, rank 1" 2 1 0 20000 $(seq 1 "$every" 78)
export SLIMPI_RANKS_PER_NODE=1

# A sum of a new size, which some or all ranks leave to MPI, on a communicator where others came
# first: a rank that fails there must not let the others wait inside MPI.
new_size() { # WHAT RANKS COUNT FIRST_COUNTS [ends]
  export TEST_WARM="$4"
  # shellcheck disable=SC2046
  "${5:-returns}" "$1" "$2" 1 0 "$3" $(seq 1 8)
  unset TEST_WARM
}
printf '0 40000 * off *\n' >rules.txt
SLIMPI_RULES=$work/rules.txt new_size "a new size that a rule leaves to MPI" 2 5000 20000
SLIMPI_ALGORITHM=auto new_size "a new size of auto" 2 100000 20000
export SLIMPI_RANKS_PER_NODE=3
new_size "a new size in one node" 2 100000 20000
export SLIMPI_RANKS_PER_NODE=1

# Before slimpi has its options it cannot tell other ranks; the job ends, with one line.
status=0
under 2 "$program" 0 0 20000 start >out.txt 2>err.txt || status=$?
holds "no memory to start: the job ends ($status)" test "$status" -ne 0 -a "$status" -ne 124
expect "$(grep -c 'slimpi.* error: .*no host memory' err.txt)" 1 "no memory to start: one line"

# The program's own exceptions pass, and are not taken for slimpi's, nor the other way round.
shows "an error handler that throws" under 2 "$top_builddir/tests/mpi/failures/throwing_handler"
expect "$(cat out.txt)" right "an error handler that throws: sums and errors"

# A hook's function throws: the hook has failed, on all ranks, and later calls are right.
$CXX -std=c++20 -x c++ -shared -fPIC -I"$top_srcdir/include" -o throws.so \
  "$top_srcdir/tests/programs/hook_failing.c" || fail "the hook does not compile"
preload=$without
export SLIMPI_ALGORITHM="hook:$work/throws.so" HOOK_FAILS="throw 2 1"
shows "a hook that throws: the program continues" \
  under 3 "$top_builddir/tests/mpi/values/hooks" errors 20001
expect "$(sed -n 2p out.txt)" "call 2: 3 of 3 ranks: slimpi: hook:$work/throws.so: encode failed \
with -1 in call 2: it threw an exception: the hook's own (rank 1)" "all ranks say so"
expect "$(grep -c ' 0 of 3 ranks' out.txt)" 4 "the other calls are right"
