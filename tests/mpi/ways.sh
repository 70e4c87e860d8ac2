#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Nonblocking and persistent sums keep the guarantees of MPI_Allreduce. This test runs other tests
# once more, with every MPI_Allreduce of their programs made in another way
# (tests/helper/another_way.c).
. "$top_srcdir/tests/helper/mpi.sh"
all=${RUN_EXPENSIVE_TESTS:-no}
export RUN_EXPENSIVE_TESTS=no # each of these in the depth of the first tier

# TEST WAY...: the test passes in each of the ways
ways() {
  while read -r name ways; do
    for one in $ways; do
      status=0
      TEST_WAY=$one sh "$top_srcdir/tests/$name.sh" </dev/null >"$work/output.txt" 2>&1 ||
        status=$?
      [ "$status" = 0 ] || grep -A 12 '^FAIL' "$work/output.txt" | head -n 60
      expect "$status" 0 "$name, $one"
    done
  done
}
# The state of a persistent sum ends with its request, so tests of state keep the requests.
ways <<'E1'
mpi/disagreement nonblocking persistent
E1
[ "$all" = no ] || ways <<'E2'
fuzz/fuzz mixed
mpi/sums nonblocking persistent
mpi/options nonblocking persistent
mpi/golden nonblocking kept
mpi/protected nonblocking persistent
mpi/feedback nonblocking kept
mpi/tensor_state nonblocking
mpi/checkpoint nonblocking kept
mpi/identities nonblocking
mpi/hooks nonblocking
mpi/bypass nonblocking persistent
mpi/failures nonblocking persistent
mpi/doubles nonblocking persistent
E2
