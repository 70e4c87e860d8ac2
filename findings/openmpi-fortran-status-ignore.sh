#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Open MPI 4.1.4, Fortran: MPI_Request_get_status with MPI_STATUS_IGNORE always sets the flag to
# .false., also for a request that is complete.
#
# Expected: .true., as with a status, and as in C.
#
# Seen on 2026-11-28, x86-64, gcc 12.2, with libopenmpi3 4.1.4-3+b1 of Debian 12, whose Fortran
# functions the program calls by their C names; the request is a send to MPI_PROC_NULL:
#
#   C, MPI_STATUS_IGNORE: 1
#   Fortran, a status: 1
#   Fortran, MPI_STATUS_IGNORE: 0
#
# A Fortran program that polls in this way never learns that its request is complete. In C the same
# poll says so.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/packages" "$work/debian"
(cd "$work/packages" && apt-get -q download libopenmpi3=4.1.4-3+b1 libopenmpi-dev=4.1.4-3+b1 \
  openmpi-common=4.1.4-3 libpmix2=4.2.2-1+deb12u1 libhwloc15=2.9.0-1 \
  libevent-core-2.1-7=2.1.12-stable-8+deb12u1 libevent-pthreads-2.1-7=2.1.12-stable-8+deb12u1 \
  >/dev/null 2>&1)
for package in "$work"/packages/*.deb; do dpkg -x "$package" "$work/debian"; done
libraries=$work/debian/usr/lib/x86_64-linux-gnu
cat >"$work/ask.c" <<'P'
#include <mpi.h>
#include <stdio.h>

void mpi_request_get_status_(MPI_Fint* request, MPI_Fint* flag, MPI_Fint* status, MPI_Fint* error);

int main(int argc, char** argv) {
  MPI_Request request;
  MPI_Fint flag, status[sizeof(MPI_Status) / sizeof(MPI_Fint)], error;
  int done;
  MPI_Init(&argc, &argv);
  MPI_Isend(&done, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
  MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
  printf("C, MPI_STATUS_IGNORE: %d\n", done);
  MPI_Fint handle = MPI_Request_c2f(request);
  mpi_request_get_status_(&handle, &flag, status, &error);
  printf("Fortran, a status: %d\n", flag != 0);
  mpi_request_get_status_(&handle, &flag, MPI_F_STATUS_IGNORE, &error);
  printf("Fortran, MPI_STATUS_IGNORE: %d\n", flag != 0);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
P
cat >"$work/seen.txt" <<'T'
C, MPI_STATUS_IGNORE: 1
Fortran, a status: 1
Fortran, MPI_STATUS_IGNORE: 0
T
gcc -I"$libraries/openmpi/include" -o "$work/ask" "$work/ask.c" -L"$libraries" \
  -L"$libraries/openmpi/lib" -Wl,-rpath-link,"$libraries" -lmpi -lmpi_mpifh
OPAL_PREFIX=$work/debian/usr OPAL_LIBDIR=$libraries/openmpi/lib OPAL_PKGDATADIR=$work/debian/usr/share/openmpi \
  OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_btl=self,tcp LD_LIBRARY_PATH=$libraries \
  timeout 60 "$work/ask" >"$work/now.txt"
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
