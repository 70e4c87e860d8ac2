/* SPDX-License-Identifier: BSD-3-Clause */
/* Float sums of ranks that share one node: exactly the bytes that MPI itself gives, whoever adds.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long state;

static float draw(void) {
  state = state * 6364136223846793005ul + 1442695040888963407ul;
  return ((float)(state >> 40) / 8388608.0f - 1.0f) * (float)(1 + (state >> 33) % 1000);
}

int main(int argc, char** argv) {
  static const int counts[] = {1,     16383,  16384,  16385,   65536,  65537,
                               99991, 300007, 524289, 1200001, 4200007};
  int rank, ranks, failures = 0, all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  state = 7919ul * (unsigned long)(rank + 1);
  for (int repeat = 0; repeat < 3; ++repeat)
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; ++i) {
      /* A long sum takes time, and the first call of a size is MPI's anyhow. */
      if (counts[i] > 4000000 && repeat == 2) continue;
      const size_t n = (size_t)counts[i], guard = 16;
      float* const in = malloc((n + 2 * guard) * sizeof *in);
      float* const got = malloc((n + 2 * guard) * sizeof *got);
      float* const want = malloc((n + 2 * guard) * sizeof *want);
      if (in == NULL || got == NULL || want == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
      for (size_t j = 0; j < n + 2 * guard; ++j) in[j] = draw();
      /* In the last round some ranks are in place and some are not. */
      const unsigned own = repeat == 2 ? (unsigned)rank : 0;
      const int in_place = (i + (unsigned)repeat + own) % 2 == 0;
      memset(got, 0x5A, (n + 2 * guard) * sizeof *got);
      if (in_place) memcpy(got + guard, in + guard, n * sizeof *in);
      memcpy(want, got, (n + 2 * guard) * sizeof *got);
      PMPI_Allreduce(in + guard, want + guard, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      MPI_Allreduce(in_place ? MPI_IN_PLACE : in + guard, got + guard, (int)n, MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
      if (memcmp(got, want, (n + 2 * guard) * sizeof *got) != 0) {
        fprintf(stderr, "rank %d of %d: n = %zu differs from MPI's own sum\n", rank, ranks, n);
        ++failures;
      }
      free(in);
      free(got);
      free(want);
    }
  PMPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%s %d ranks on one node\n", all == 0 ? "ok" : "FAILED", ranks);
  MPI_Finalize();
  return all != 0;
}
