/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums the same three vectors on every machine and prints a digest of each result:
 *   NAME DIGEST DIGEST DIGEST
 * NAME is the first argument, the optional second one the number of floats. With `models` as
 * the third one the vectors lie close together, as models do that are averaged; with `thirds` every
 * addition rounds. The fourth one is another collective than Allreduce, as in
 * tests/helper/mpi/collectives.h, by the function for large counts if `large` is the fifth one. The
 * digest covers the results of all ranks in rank order, so it also stands for algorithms whose
 * ranks end with different values. The inputs are made with integers alone: no rounding depends on
 * the machine. */
#include "tests/helper/base/program.h"

#include "tests/helper/mpi/collectives.h"

enum { CALLS = 3 };

/* Mixes 64 bits, by the finalizer of SplitMix64. */
static uint64_t mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

/* Returns a number of a bell-shaped distribution around 0 that is exact in a float. Every 50th
 * block of 512 values is 16 times larger, and every 97th value is 0. */
static float input(int rank, int call, int i) {
  const uint64_t bits =
      mixed((uint64_t)rank * 1000003u + (uint64_t)call * 7919u + (uint64_t)i * 64u);
  int32_t sum = -2 * 65535;
  for (int k = 0; k < 4; ++k) sum += (int32_t)(bits >> 16 * k & 0xffff);
  if (i % 97 == 0) return 0;
  return (float)sum * (i / 512 % 50 == 0 ? 16.0f : 1.0f) / 65536.0f;
}

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "golden";
  const int n = argc > 2 ? atoi(argv[2]) : 70001,
            models = argc > 3 && strcmp(argv[3], "models") == 0;
  const char* const collective = argc > 4 ? argv[4] : "Allreduce";
  const int thirds = argc > 3 && strcmp(argv[3], "thirds") == 0,
            large = argc > 5 && strcmp(argv[5], "large") == 0;
  int blocks[MOST_RANKS];
  begin_mpi();
  float* const in = malloc((size_t)n * sizeof *in);
  float* const out = malloc((size_t)n * sizeof *out);
  uint64_t* const all = malloc((size_t)g_size * sizeof *all);
  if (in == NULL || out == NULL || all == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int call = 0; call < CALLS; ++call) {
    for (int i = 0; i < n; ++i) {
      in[i] = thirds   ? input(g_rank, call, i) / 3
              : models ? input(0, 0, i) + input(g_rank, call, i) / 16
                       : input(g_rank, call, i);
      out[i] = -1;
    }
    int length = n;
    if (names_blocks(collective) || names_gather(collective)) {
      divide_blocks(collective, n, g_size, blocks);
      if (names_blocks(collective)) length = blocks[g_rank];
    }
    sum_floats(collective, in, out, n, blocks, large, MPI_COMM_WORLD);
    const uint64_t mine = digest_of(out, (size_t)length * sizeof *out, kDigest);
    MPI_Gather(&mine, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (g_rank == 0)
      printf("%s %016" PRIx64 "%s", call == 0 ? name : "",
             digest_of(all, (size_t)g_size * sizeof *all, kDigest), call == CALLS - 1 ? "\n" : "");
  }
  free(in);
  free(out);
  free(all);
  MPI_Finalize();
  return 0;
}
