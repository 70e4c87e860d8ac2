/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums the same three vectors on every machine and prints a digest of each result:
 *   NAME CALL DIGEST
 * NAME is the first argument, the optional second one the number of floats. With `models` as
 * the third one the vectors lie close together, as models do that are averaged; with `thirds` every
 * addition rounds. The fourth one is another collective than Allreduce, as in
 * tests/helper/collectives.h, by the function for large counts if `large` is the fifth one. The
 * digest covers the results of all ranks in rank order, so it also stands for algorithms whose
 * ranks end with different values. The inputs are made with integers alone: no rounding depends on
 * the machine. */
#include <inttypes.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/helper/collectives.h"

enum { CALLS = 3 };

/* A good mixing of 64 bits (the finalizer of SplitMix64). */
static uint64_t mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

/* Bell-shaped around 0 and exact in a float. Every 50th block of 512 values is 16 times larger,
 * every 97th value is 0. */
static float input(int rank, int call, int i) {
  const uint64_t bits =
      mixed((uint64_t)rank * 1000003u + (uint64_t)call * 7919u + (uint64_t)i * 64u);
  int32_t sum = -2 * 65535;
  for (int k = 0; k < 4; ++k) sum += (int32_t)(bits >> 16 * k & 0xffff);
  if (i % 97 == 0) return 0;
  return (float)sum * (i / 512 % 50 == 0 ? 16.0f : 1.0f) / 65536.0f;
}

/* FNV-1a. */
static uint64_t digest(const void* data, size_t bytes) {
  uint64_t value = 14695981039346656037u;
  for (size_t i = 0; i < bytes; ++i)
    value = (value ^ ((const unsigned char*)data)[i]) * 1099511628211u;
  return value;
}

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "golden";
  const int n = argc > 2 ? atoi(argv[2]) : 70001,
            models = argc > 3 && strcmp(argv[3], "models") == 0;
  const char* const collective = argc > 4 ? argv[4] : "Allreduce";
  const int thirds = argc > 3 && strcmp(argv[3], "thirds") == 0,
            large = argc > 5 && strcmp(argv[5], "large") == 0;
  int rank, size, blocks[MOST_RANKS];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  float* const in = malloc((size_t)n * sizeof *in);
  float* const out = malloc((size_t)n * sizeof *out);
  uint64_t* const all = malloc((size_t)size * sizeof *all);
  if (in == NULL || out == NULL || all == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int call = 0; call < CALLS; ++call) {
    for (int i = 0; i < n; ++i) {
      in[i] = thirds   ? input(rank, call, i) / 3
              : models ? input(0, 0, i) + input(rank, call, i) / 16
                       : input(rank, call, i);
      out[i] = -1;
    }
    int length = n;
    if (names_blocks(collective)) {
      divide_blocks(collective, n, size, blocks);
      length = blocks[rank];
    }
    sum_floats(collective, in, out, n, blocks, large, MPI_COMM_WORLD);
    const uint64_t mine = digest(out, (size_t)length * sizeof *out);
    MPI_Gather(&mine, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (rank == 0)
      printf("%s %d %016" PRIx64 "\n", name, call, digest(all, (size_t)size * sizeof *all));
  }
  free(in);
  free(out);
  free(all);
  MPI_Finalize();
  return 0;
}
