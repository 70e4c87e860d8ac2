/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints for rank 0 how often slimpi allocated memory in the last CALLS sums of COUNT floats in one
 * buffer. WARM sums come first, because slimpi allocates in them the memory that it keeps. Usage:
 * steady COUNT WARM CALLS COLLECTIVE, which is one of tests/helper/mpi/collectives.h. */
#include "tests/helper/base/program.h"

#include "tests/helper/base/allocations.h"
#include "tests/helper/mpi/collectives.h"

int main(int argc, char** argv) {
  int blocks[MOST_RANKS] = {0};
  if (argc < 5) return 2;
  const char* const collective = argv[4];
  unsigned long (*count)(void) = (unsigned long (*)(void))dlsym(RTLD_DEFAULT, "test_allocations");
  if (count == NULL) return 2;
  begin_mpi();
  const int n = atoi(argv[1]), warm = atoi(argv[2]), calls = atoi(argv[3]);
  float* const in = malloc((size_t)n * sizeof *in);
  float* const out = malloc((size_t)n * sizeof *out);
  if (names_blocks(collective)) divide_blocks(collective, n, g_size, blocks);
  unsigned long before = 0;
  for (int call = 0; call < warm + calls; ++call) {
    for (int i = 0; i < n; ++i) in[i] = (float)((i * 7 + g_rank + call) % 101);
    if (call == warm) before = count();
    if (sum_floats(collective, in, out, n, blocks, 0, MPI_COMM_WORLD) != MPI_SUCCESS) return 1;
  }
  if (g_rank == 0) printf("%lu allocations in %d calls\n", count() - before, calls);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
