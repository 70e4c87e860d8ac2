#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Fortran programs, through mpif.h, the mpi module and mpi_f08: sums as they must be, with and
# without the library.
. "$top_srcdir/tests/helper/mpi.sh"
[ -n "${MPIFC:-}" ] || skip "configure found no MPI Fortran compiler"
programs=$top_srcdir/tests/programs
for program in sums sums_f08; do
  "$MPIFC" -O2 -w -I"$programs" -o "$program" "$programs/checks.f90" "$programs/$program.f90" ||
    skip "$MPIFC cannot build $program"
done
alike "mpif.h and mpi module" 8 4 ./sums
alike "mpi_f08" 4 3 ./sums_f08
if "$MPIFC" -cpp -DF08 -O1 -w -o requests "$programs/requests.f90" 2>build.log; then
  expect "$(under 2 ./requests exact)" "all ways" "requests of mpi_f08, before the first sum, too"
else
  echo "NOTE $MPIFC cannot build requests: $(grep -m 1 Error build.log)"
fi

# Nonblocking and persistent sums, where the MPI has both. Not without the library: persistent sums
# of MPICH 4.0 break in its MPI_Waitany.
if "$MPIFC" -O2 -w -I"$programs" -o nonblocking "$programs/checks.f90" \
  "$programs/nonblocking.f90" 2>build.log; then
  export SLIMPI_RANKS_PER_NODE=1
  SLIMPI_REPORT=$work/report.json under 3 ./nonblocking >out.txt ||
    fail "nonblocking sums: exit status $?"
  expect "$(grep -c PASS out.txt)" 36 "nonblocking and persistent sums"
  expect "$(report report.json calls compressed)" 144 "nonblocking and persistent: taken over"
  "${MPICC:-mpicc}" -std=c99 -shared -fPIC -I"$top_srcdir/include" -o hook.so \
    "$programs/hook_failing.c"
  HOOK_FAILS="encode 2 1" SLIMPI_ALGORITHM=hook:$work/hook.so under 3 ./nonblocking failing \
    >out.txt || fail "nonblocking sums that fail: exit status $?"
  expect "$(grep -c PASS out.txt)" 32 "errors arrive where the requests are completed"
  grep FAIL out.txt || :
else
  echo "NOTE $MPIFC cannot build nonblocking: $(grep -m 1 Error build.log)"
fi
