#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# MPICH 5.0.2: MPI_Request_get_status makes a persistent request that is complete inactive. A second
# call, and MPI_Wait, then give an empty status: no elements, from MPI_ANY_SOURCE. The MPI standard
# has MPI_Request_get_status leave the request as it is.
#
# Seen on 2026-11-29, with mpich==5.0.2 of the Python index, x86-64, gcc 12.2:
#
#   MPI_Request_get_status: 1 element from 0
#   again: 0 elements from MPI_ANY_SOURCE
#   MPI_Wait: 0 elements from MPI_ANY_SOURCE
#
# MPICH 4.0.2 of Debian 12 and Open MPI 5.0.11 print "1 element from 0" three times.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install mpich==5.0.2
cat >"$work/status.c" <<'P'
#include <mpi.h>
#include <stdio.h>

static void say(const char* function, MPI_Status* status) {
  int count;
  MPI_Get_count(status, MPI_INT, &count);
  printf("%s: %d element%s from %s\n", function, count, count == 1 ? "" : "s",
         status->MPI_SOURCE == MPI_ANY_SOURCE ? "MPI_ANY_SOURCE" : "0");
}

int main(int argc, char** argv) {
  MPI_Request received;
  MPI_Status status;
  int sent = 1, got = 0, flag = 0;
  MPI_Init(&argc, &argv);
  MPI_Recv_init(&got, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &received);
  MPI_Start(&received);
  MPI_Send(&sent, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
  while (!flag) MPI_Request_get_status(received, &flag, &status);
  say("MPI_Request_get_status", &status);
  MPI_Request_get_status(received, &flag, &status);
  say("again", &status);
  MPI_Wait(&received, &status);
  say("MPI_Wait", &status);
  MPI_Request_free(&received);
  MPI_Finalize();
}
P
cat >"$work/seen.txt" <<'T'
MPI_Request_get_status: 1 element from 0
again: 0 elements from MPI_ANY_SOURCE
MPI_Wait: 0 elements from MPI_ANY_SOURCE
T
"$work/environment/bin/mpicc" "$work/status.c" -o "$work/status"
timeout 60 "$work/environment/bin/mpiexec" -n 1 "$work/status" >"$work/now.txt"
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
