#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Fortran programs, through mpif.h, the mpi module and mpi_f08: sums as they must be, with and
# without the library.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
[ -n "${MPIFC:-}" ] || skip "configure found no MPI Fortran compiler"
programs=$top_srcdir/tests/programs
for program in sums sums_f08; do
  "$MPIFC" -O2 -w -I"$programs" -o "$program" "$programs/checks.f90" "$programs/$program.f90" ||
    skip "$MPIFC cannot build $program"
done
alike "mpif.h and mpi module" 4 4 ./sums
alike "mpi_f08" 2 3 ./sums_f08
verdict
