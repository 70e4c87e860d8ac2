/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of buffers of which one lies in the memory of a GPU that slimpi cannot use, on the second
 * rank, the only one that has loaded that GPU's library. Usage: foreign LIBRARY [late|idle].
 *   late   the library is loaded after the first sum: that is an MPI error
 *   idle   the program never initializes the library, so all memory is the host's */
#include "tests/helper/base/program.h"

enum { COUNT = 30000 };

static void* g_library;

static void load(const char* name, int initialize) {
  g_library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (g_library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  if (initialize) ((int (*)(unsigned))dlsym(g_library, "zeInit"))(0);
}

/* Returns whether a sum has MPI's own values, which are exact because they are whole numbers. */
static int sum(const float* in, float* out) {
  if (MPI_Allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS) return -1;
  return error_of_whole(out, COUNT, 0, g_size) == 0;
}

int main(int argc, char** argv) {
  begin_mpi();
  const char* const how = argc > 2 ? argv[2] : "";
  const int late = strcmp(how, "late") == 0, here = g_rank == 1;
  float *const in = malloc(COUNT * sizeof(float)), *const out = malloc(COUNT * sizeof(float));
  float* foreign = out;
  int failures = 0;
  fill_whole(in, COUNT, 0, g_rank);
  if (here && !late) load(argv[1], strcmp(how, "idle") != 0);
  if (late) {
    sum(in, out);
    if (here) load(argv[1], 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  if (here) foreign = ((void* (*)(size_t))dlsym(g_library, "foreign_take"))(COUNT * sizeof(float));
  if (late) {
    failures += sum(in, foreign) != -1;
    if (failures != 0) printf("rank %d: a sum that slimpi cannot do ends well\n", g_rank);
    MPI_Finalize();
    return failures;
  }
  const int first = sum(in, foreign);
  memcpy(foreign, in, COUNT * sizeof(float));
  const int second = here ? sum(foreign, out) : sum(in, out);
  sum(in, out); /* of the host's memory: compressed */
  if (strcmp(how, "idle") != 0 && (first != 1 || second != 1)) ++failures;
  if (here) {
    const int error = ((int (*)(void))dlsym(g_library, "hipGetLastError"))();
    if (error != 0) ++failures;
  }
  if (failures != 0) printf("rank %d: sums %d and %d\n", g_rank, first, second);
  MPI_Finalize();
  return failures;
}
