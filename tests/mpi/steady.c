/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints for rank 0 how often slimpi allocated memory in the last CALLS of many sums of COUNT
 * floats in one buffer. WARM sums come before these: they make what slimpi keeps. With "show" each
 * of the allocations writes its backtrace, and the time of a call is printed. Usage: steady COUNT
 * WARM CALLS [show|- [COLLECTIVE of tests/helper/collectives.h]] */
#include "tests/helper/program.h"

#include "tests/helper/allocations.h"
#include "tests/helper/collectives.h"

int main(int argc, char** argv) {
  int blocks[MOST_RANKS] = {0};
  const char* const collective = argc > 5 ? argv[5] : "Allreduce";
  const int shows = argc > 4 && strcmp(argv[4], "show") == 0;
  if (argc < 4) return 2;
  unsigned long (*count)(void) = (unsigned long (*)(void))dlsym(RTLD_DEFAULT, "test_allocations");
  void (*show)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "test_show_allocations");
  if (count == NULL) return 2;
  begin_mpi();
  const int n = atoi(argv[1]), warm = atoi(argv[2]), calls = atoi(argv[3]);
  float* const in = malloc((size_t)n * sizeof *in);
  float* const out = malloc((size_t)n * sizeof *out);
  if (names_blocks(collective)) divide_blocks(collective, n, g_size, blocks);
  unsigned long before = 0;
  double begin = 0;
  for (int call = 0; call < warm + calls; ++call) {
    for (int i = 0; i < n; ++i) in[i] = (float)((i * 7 + g_rank + call) % 101);
    if (call == warm) {
      before = count();
      begin = MPI_Wtime();
      if (shows && g_rank == 0) show(1);
    }
    if (sum_floats(collective, in, out, n, blocks, 0, MPI_COMM_WORLD) != MPI_SUCCESS) return 1;
  }
  show(0);
  if (g_rank == 0) printf("%lu allocations in %d calls\n", count() - before, calls);
  if (g_rank == 0 && shows) printf("%.1f us a call\n", (MPI_Wtime() - begin) / calls * 1e6);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
