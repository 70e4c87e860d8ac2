#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each communicator has shared memory of its own, also where /dev/shm is as small as in a container
# and where memfd_create is refused. Two threads may sum on two communicators of the same ranks at
# the same time.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
# Each node has two ranks, and sums are exact whoever adds.
export SLIMPI_RANKS_PER_NODE=2 SLIMPI_ALGORITHM=allreduce SLIMPI_MIN_SIZE=0
: "${CC:=cc}"
program=$top_builddir/tests/mpi/calls/isolation
export SLIMPI_REPORT=$work/report.json SLIMPI_INTRA=shm EXACT=1

# in_small SIZE COMMAND...: run it with a /dev/shm of this size
in_small() {
  shm_size=$1
  shift
  # shellcheck disable=SC2016
  timeout -k 5 "$seconds" unshare -rm sh -c \
    'mount -t tmpfs -o size='"$shm_size"' tmpfs /dev/shm && exec "$@"' sh "$@"
}
# check WHAT MOST: segments that the last run says in its report, and that it said nothing else
check() {
  segments=$(report report.json memory segments)
  holds "$1: $segments segments, at most $2" test "$segments" -ge 1 -a "$segments" -le "$2"
  expect "$(cat err.txt)" "" "$1: not a word on stderr"
  rm -f report.json
}

# Two threads, two communicators of the same ranks.
holds "two threads, two nodes" under 4 "$program" pair 20 2 2>err.txt
check "two threads, two nodes" 2

# slimpi serves 32 of the 40 communicators at a time.
holds "40 communicators" under 4 "$program" live 40 2>err.txt
check "40 communicators" 32
# Every communicator that was freed has left its segment.
holds "communicators in a loop" under 4 "$program" many 400 2>err.txt
check "communicators in a loop" 2

in_small 64m true 2>/dev/null || skip "no user and mount namespaces here"
$CC -shared -fPIC -o no_memfd.so "$top_srcdir/tests/mpi/failures/no_memfd.c" ||
  fail "building no_memfd.so"
no_memfd=$work/no_memfd.so
if in_small 64m "$MPIEXEC" -n 8 "$program" live 3 </dev/null >plain.txt 2>&1; then
  holds "8 ranks, 64 MB" in_small 64m "$MPIEXEC" -n 8 \
    -genv LD_PRELOAD "$preload" "$program" live 3 2>err.txt </dev/null
  check "8 ranks, 64 MB" 4
  holds "8 ranks, 64 MB, no memfd" in_small 64m "$MPIEXEC" -n 8 \
    -genv LD_PRELOAD "$no_memfd:$preload" "$program" live 3 2>err.txt </dev/null
  check "8 ranks, 64 MB, no memfd" 4
else
  echo "MPI itself does not run 8 ranks with 64 MB of /dev/shm"
fi
# Where UCX carries messages, it wants more than 1 MB of /dev/shm unless it is told not to.
export UCX_TLS="${UCX_TLS:-self,tcp}"
# MPICH 4.0 over UCX and TCP may hang in MPI_Finalize (tools/slimpi-lab-exit.c).
ending=$top_builddir/.libs/slimpi-lab-exit.so
# Open MPI then says that it wants 16 MB.
if in_small 1m "$MPIEXEC" -n 4 -genv LD_PRELOAD "$ending" "$program" live 2 </dev/null >plain.txt \
  2>plain.err &&
  ! grep -q 'not enough space' plain.err; then
  holds "4 ranks, 1 MB" in_small 1m "$MPIEXEC" -n 4 \
    -genv LD_PRELOAD "$ending:$preload" "$program" live 3 2>err.txt </dev/null
  check "4 ranks, 1 MB" 4
  # If the segment is smaller than usual, or cannot be made, slimpi prints nothing, unless
  # SLIMPI_INTRA asks for it.
  holds "4 ranks, 1 MB, no memfd" in_small 1m "$MPIEXEC" -n 4 \
    -genv LD_PRELOAD "$ending:$no_memfd:$preload" -genv SLIMPI_INTRA auto "$program" live 3 \
    2>err.txt </dev/null
  expect "$(cat err.txt)" "" "4 ranks, 1 MB, no memfd: not a word on stderr"
else
  echo "MPI itself does not run 4 ranks with 1 MB of /dev/shm"
fi
