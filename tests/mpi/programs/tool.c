/* SPDX-License-Identifier: BSD-3-Clause */
/* A tool that counts allreduces and prints how many there were, as profilers do. By default its
 * MPI_Allreduce calls PMPI_Allreduce; with -DNEXT, the next MPI_Allreduce in the order of symbols.
 * With -DSTART or -DWAIT it also defines MPI_Start or MPI_Wait, which call their PMPI_
 * functions. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

#ifdef NEXT
#define NAME "next"
#else
#define NAME "pmpi"
#endif

static int calls;

int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  ++calls;
#ifdef NEXT
  int (*next)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) = (int (*)(
      const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm))dlsym(RTLD_NEXT, "MPI_Allreduce");
  return next(in, out, count, type, op, comm);
#else
  return PMPI_Allreduce(in, out, count, type, op, comm);
#endif
}

#ifdef START
int MPI_Start(MPI_Request* request) {
  return PMPI_Start(request);
}
#endif
#ifdef WAIT
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  return PMPI_Wait(request, status);
}
#endif

__attribute__((destructor)) static void say(void) {
  if (calls != 0) fprintf(stderr, "tool " NAME ": %d\n", calls);
}
