#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Fortran programs, through mpif.h, the mpi module and mpi_f08: sums as they must be, with and
# without the library.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
[ -n "${MPIFC:-}" ] || skip "configure found no MPI Fortran compiler"
programs=$top_srcdir/tests/programs
for program in sums sums_f08; do
  "$MPIFC" -O2 -w -I"$programs" -o "$program" "$programs/checks.f90" "$programs/$program.f90" ||
    skip "$MPIFC cannot build $program"
done
export SLIMPI_CALLS=allreduce,reduce_scatter,allgather
alike "mpif.h and mpi module" 12 4 ./sums
alike "mpi_f08" 6 3 ./sums_f08

# Nonblocking and persistent ones, where the MPI has both. Persistent ones not without the library:
# those of MPICH 4.0 break in its MPI_Waitany.
hook hook failing
export HOOK_FAILS="encode 2 1"
build() { "$MPIFC" -cpp "-D$module" "$@" -O1 -w -o requests "$programs/requests.f90" 2>build.log; }
for module in F08 MODULE; do
  if build -DPERSISTENT; then wanted=34; elif build; then wanted=17; else
    echo "NOTE $MPIFC cannot build requests: $(grep -m 1 Error build.log)"
    continue
  fi
  expect "$(under 2 ./requests exact)" "all ways" "$module: requests, before the first sum, too"
  export SLIMPI_RANKS_PER_NODE=1
  expect "$(SLIMPI_REPORT=$work/report.json under 3 ./requests)" "all ways" \
    "$module: $wanted sums and all-gathers"
  expect "$(report report.json calls compressed)" "$wanted" "$module: taken over"
  expect "$(SLIMPI_ALGORITHM=hook:$work/hook.so under 3 ./requests failing)" "the second" \
    "$module: errors arrive where the requests are completed"
  unset SLIMPI_RANKS_PER_NODE
done
