/* SPDX-License-Identifier: BSD-3-Clause */
/* by_handle LIBRARY [deep]: loads MPI and looks every function up in the handle, as Julia and
 * MPItrampoline do; with `deep`, loads it with RTLD_DEEPBIND. Compiled with mpi.h, but not linked
 * to MPI. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void* mpi;

static void* find(const char* name) {
  void* found = dlsym(mpi, name);
  if (found == NULL) {
    fprintf(stderr, "%s is not there\n", name);
    exit(2);
  }
  return found;
}

#ifdef OPEN_MPI
#define TYPE(name) ((MPI_Datatype)find("ompi_mpi_" name))
#define SUM ((MPI_Op)find("ompi_mpi_op_sum"))
#define WORLD ((MPI_Comm)find("ompi_mpi_comm_world"))
#else
#define TYPE(name) MPI_FLOAT
#define SUM MPI_SUM
#define WORLD MPI_COMM_WORLD
#endif

int main(int argc, char** argv) {
  enum { kCount = 100003 };
  int rank = 0, size = 0, bad = 0;
  mpi = dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL | (argc > 2 ? RTLD_DEEPBIND : 0));
  if (mpi == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  ((int (*)(int*, char***))find("MPI_Init"))(&argc, &argv);
  ((int (*)(MPI_Comm, int*))find("MPI_Comm_rank"))(WORLD, &rank);
  ((int (*)(MPI_Comm, int*))find("MPI_Comm_size"))(WORLD, &size);
  float* x = malloc(kCount * sizeof *x);
  for (int i = 0; i < kCount; ++i) x[i] = (float)(i % 1000) + (float)rank;
  ((int (*)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm))find("MPI_Allreduce"))(
      MPI_IN_PLACE, x, kCount, TYPE("float"), SUM, WORLD);
  for (int i = 0; i < kCount; ++i) {
    const float exact = (float)size * (float)(i % 1000) + (float)(size * (size - 1) / 2);
    bad |= fabsf(x[i] - exact) > 30;
  }
  if (rank == 0) puts(bad ? "wrong" : "close");
  free(x);
  ((int (*)(void))find("MPI_Finalize"))();
  return bad;
}
