// SPDX-License-Identifier: BSD-3-Clause
// Preloaded behind slimpi, this calls slimpi_after_wait once from MPI_Wait: after MPI has completed
// the request, and before slimpi raises the request's error.
#define _GNU_SOURCE
#include <mpi.h>
#include <stddef.h>

void (*slimpi_after_wait)(void);

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  const int code = PMPI_Wait(request, status);
  void (*const call)(void) = slimpi_after_wait;
  slimpi_after_wait = NULL;
  if (call != NULL) call();
  return code;
}
