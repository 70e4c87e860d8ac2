#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Nonblocking and persistent sums keep the guarantees of MPI_Allreduce. This test runs other tests
# once more, with every MPI_Allreduce of their programs made in another way
# (tests/helper/mpi/another_way.c).
. "$top_srcdir/tests/helper/scripts/mpi.sh"
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
mpi/failures/disagreement nonblocking persistent
E1
[ "$all" = no ] || ways <<'E2'
fuzz/fuzz mixed
mpi/values/sums nonblocking persistent
mpi/observe/options nonblocking persistent
mpi/values/golden nonblocking kept
mpi/devices/protected nonblocking persistent
mpi/state/feedback nonblocking kept
mpi/state/tensor_state nonblocking
mpi/state/checkpoint nonblocking kept
mpi/state/identities nonblocking
mpi/values/hooks nonblocking
mpi/calls/bypass nonblocking persistent
mpi/failures/failures nonblocking persistent
mpi/values/doubles nonblocking persistent
E2
