#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# MPICH 5.0.2: if a session is open, MPI_Finalize calls no delete function of MPI_COMM_SELF's
# attributes. MPI_Session_finalize calls it later, and MPI_Finalized then gives true in it. The MPI
# standard ("Allowing User Functions at MPI Finalization") has MPI_Finalize call it before all else,
# while MPI_Finalized gives false.
#
# Seen on 2026-11-29, with mpich==5.0.2 of the Python index, x86-64, gcc 12.2, and the same with
# 4.0.2 of Debian 12:
#
#   MPI_Finalize has returned
#   delete function: finalized
#   MPI_Session_finalize has returned
#
# Open MPI 5.0.11 prints "delete function: not finalized" in the first line. So a library that writes
# its results in such a function writes them in another call of the program.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install mpich==5.0.2
cat >"$work/self.c" <<'P'
#include <mpi.h>
#include <stdio.h>

static int deleted(MPI_Comm comm, int keyval, void* value, void* extra) {
  int finalized;
  (void)comm, (void)keyval, (void)value, (void)extra;
  MPI_Finalized(&finalized);
  printf("delete function: %sfinalized\n", finalized ? "" : "not ");
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  MPI_Session session;
  int keyval;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Init(&argc, &argv);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &keyval, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
  MPI_Finalize();
  printf("MPI_Finalize has returned\n");
  MPI_Session_finalize(&session);
  printf("MPI_Session_finalize has returned\n");
}
P
cat >"$work/seen.txt" <<'T'
MPI_Finalize has returned
delete function: finalized
MPI_Session_finalize has returned
T
"$work/environment/bin/mpicc" "$work/self.c" -o "$work/self"
timeout 60 "$work/environment/bin/mpiexec" -n 1 "$work/self" >"$work/now.txt"
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
