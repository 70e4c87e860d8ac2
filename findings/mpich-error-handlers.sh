#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# MPICH 5.0.2: a communicator of MPI_Comm_create, MPI_Comm_create_group or MPI_Intercomm_merge has
# MPI_ERRORS_ARE_FATAL, whatever the parent has. The other functions that make communicators keep
# the parent's error handler, as MPI says of all. So an error ends a program that has set
# MPI_ERRORS_RETURN for MPI_COMM_WORLD, if it comes from such a communicator.
#
# Seen on 2026-11-28, with mpich==5.0.2 of the Python index, x86-64, two ranks of one machine, gcc
# 12.2:
#
#   MPI_Comm_dup: MPI_ERRORS_RETURN
#   MPI_Comm_split: MPI_ERRORS_RETURN
#   MPI_Cart_create: MPI_ERRORS_RETURN
#   MPI_Intercomm_create: MPI_ERRORS_RETURN
#   MPI_Comm_create: MPI_ERRORS_ARE_FATAL
#   MPI_Comm_create_group: MPI_ERRORS_ARE_FATAL
#   MPI_Intercomm_merge: MPI_ERRORS_ARE_FATAL
#
# MPICH 4.0.2 of Debian 12 says the same. Open MPI 4.1.4 has MPI_ERRORS_RETURN in all rows.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install mpich==5.0.2
cat >"$work/handlers.c" <<'P'
#include <mpi.h>
#include <stdio.h>

static int rank;

static void say(const char* function, MPI_Comm made) {
  MPI_Errhandler handler;
  MPI_Comm_get_errhandler(made, &handler);
  if (rank == 0)
    printf("%s: %s\n", function,
           handler == MPI_ERRORS_RETURN      ? "MPI_ERRORS_RETURN"
           : handler == MPI_ERRORS_ARE_FATAL ? "MPI_ERRORS_ARE_FATAL"
                                             : "another one");
}

int main(int argc, char** argv) {
  const int dimensions[1] = {2}, periods[1] = {1};
  MPI_Group group;
  MPI_Comm made, alone, both;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  say("MPI_Comm_dup", made);
  MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &alone);
  say("MPI_Comm_split", alone);
  MPI_Cart_create(MPI_COMM_WORLD, 1, dimensions, periods, 0, &made);
  say("MPI_Cart_create", made);
  MPI_Intercomm_create(alone, 0, MPI_COMM_WORLD, 1 - rank, 0, &both);
  say("MPI_Intercomm_create", both);
  MPI_Comm_create(MPI_COMM_WORLD, group, &made);
  say("MPI_Comm_create", made);
  MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &made);
  say("MPI_Comm_create_group", made);
  MPI_Intercomm_merge(both, rank, &made);
  say("MPI_Intercomm_merge", made);
  MPI_Finalize();
  return 0;
}
P
"$work/environment/bin/mpicc" -o "$work/handlers" "$work/handlers.c"
cat >"$work/seen.txt" <<'T'
MPI_Comm_dup: MPI_ERRORS_RETURN
MPI_Comm_split: MPI_ERRORS_RETURN
MPI_Cart_create: MPI_ERRORS_RETURN
MPI_Intercomm_create: MPI_ERRORS_RETURN
MPI_Comm_create: MPI_ERRORS_ARE_FATAL
MPI_Comm_create_group: MPI_ERRORS_ARE_FATAL
MPI_Intercomm_merge: MPI_ERRORS_ARE_FATAL
T
timeout 60 "$work/environment/bin/mpiexec" -n 2 "$work/handlers" >"$work/now.txt"
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
