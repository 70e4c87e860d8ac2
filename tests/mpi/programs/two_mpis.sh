#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Two MPIs in one process: the sums of the one that the caller uses are compressed. Where that
# cannot be told, slimpi does nothing and names both.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
need mpicc.mpich mpiexec.mpich mpicc.openmpi mpiexec.openmpi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export SLIMPI_RANKS_PER_NODE=1 SLIMPI_BITS=8 SLIMPI_REPORT="$work/report.json"
cat >sum.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static float x[50000];
static void *function(void *handle, const char *name) {
  void *const found = dlsym(handle, name);
  if (found == NULL) printf("no %s\n", name);
  return found;
}
/* MPI's functions in `handle`, but for the sum. */
#define CALL(name) ((__typeof__(&name))function(handle, #name))
int sum(void *handle, void *summing) {
  int rank, size, bad = 0;
  CALL(MPI_Init)(NULL, NULL);
  CALL(MPI_Comm_rank)(MPI_COMM_WORLD, &rank);
  CALL(MPI_Comm_size)(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 50000; ++i) x[i] = (float)(i % 1000) + (float)rank;
  ((__typeof__(&MPI_Allreduce))summing)(MPI_IN_PLACE, x, 50000, MPI_FLOAT, MPI_SUM,
                                        MPI_COMM_WORLD);
  for (int i = 0; i < 50000; ++i) bad |= fabsf(x[i] - 2 * (float)(i % 1000) - 1) > 20;
  if (rank == 0) puts(bad || size != 2 ? "wrong" : "close");
  CALL(MPI_Finalize)();
  return bad;
}
#ifdef MODULE
int module(void) { return sum(RTLD_DEFAULT, (void *)MPI_Allreduce); }
#endif
#ifdef LINKED
int main(int argc, char **argv) {
  if (argc > 1 && !dlopen(argv[1], RTLD_NOW | (argc > 2 ? RTLD_GLOBAL : RTLD_LOCAL)))
    puts(dlerror());
  return sum(RTLD_DEFAULT, (void *)MPI_Allreduce);
}
#endif
C
cat >by_module.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
/* Loads all modules, none of them for all the process, and calls the last one. */
int main(int argc, char **argv) {
  void *last = NULL;
  for (int i = 1; i < argc; ++i)
    if ((last = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL)) == NULL) puts(dlerror());
  return ((int (*)(void))dlsym(last, "module"))();
}
C
cat >unknown_caller.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int sum(void *, void *);
/* Looks the sum up among the names of the process, which only slimpi has. */
int main(int argc, char **argv) {
  void *const first = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (argc != 3 || !first || !dlopen(argv[2], RTLD_NOW | RTLD_LOCAL)) puts(dlerror());
  return sum(first, dlsym(RTLD_DEFAULT, "MPI_Allreduce"));
}
C
mpicc.mpich -DLINKED -o by_mpich sum.c -lm
mpicc.openmpi -DLINKED -o by_openmpi sum.c -lm
mpicc.mpich -DMODULE -shared -fPIC -o mpich.so sum.c -lm
mpicc.openmpi -DMODULE -shared -fPIC -o openmpi.so sum.c -lm
${CC:-cc} -o by_module by_module.c -ldl
mpicc.mpich -c -o sum.o sum.c
${CC:-cc} -o unknown_caller unknown_caller.c sum.o -ldl -lm

# try MPI WHAT COMMAND...: two ranks by its launcher
try() {
  what=$2
  case $1 in mpich) MPIEXEC=mpiexec.mpich ;; *) MPIEXEC="mpiexec.openmpi --oversubscribe" ;; esac
  shift 2
  rm -f report.json
  under 2 "$@" >out.txt 2>err.txt || fail "$what: exit status $?"
  expect "$(cat out.txt)" close "$what: the sum"
}
served() { # MPI WHAT COMMAND...
  try "$@"
  expect "$(report report.json calls compressed) $(cat err.txt)" "1 " "$2: compressed"
}
for scope in "" global; do
  # shellcheck disable=SC2086
  served mpich "linked to MPICH, Open MPI by dlopen $scope" ./by_mpich libmpi.so.40 $scope
  # shellcheck disable=SC2086
  served openmpi "linked to Open MPI, MPICH by dlopen $scope" ./by_openmpi libmpich.so.12 $scope
done
served mpich "two modules, that of MPICH calls" ./by_module ./openmpi.so ./mpich.so
served openmpi "two modules, that of Open MPI calls" ./by_module ./mpich.so ./openmpi.so
try mpich "a caller that has no MPI" ./unknown_caller libmpich.so.12 libmpi.so.40
expect "$(grep -c 'warning: .*MPICH.* and Open MPI.*leaves this process alone' err.txt)" 1 \
  "a caller that has no MPI: one warning names both"
holds "a caller that has no MPI: not compressed" test ! -e report.json
