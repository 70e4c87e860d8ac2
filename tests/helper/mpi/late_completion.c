// SPDX-License-Identifier: BSD-3-Clause
// Preloaded behind slimpi, this delays the completion of generalized requests for a moment, so that
// other threads act in the middle of what slimpi does at the end of a nonblocking sum.
#define _GNU_SOURCE
#include <mpi.h>
#include <unistd.h>

int PMPI_Grequest_complete(MPI_Request request) {
  usleep(50000);
  return MPI_Grequest_complete(request);
}
