/* SPDX-License-Identifier: BSD-3-Clause */
/* With SLIMPI_ALGORITHM=allreduce and SLIMPI_HIERARCHY=flat each element is the sum in rank order,
 * of floats in float and of doubles in double, whatever the function, the length and the nodes. The
 * program computes this sum from the inputs of all ranks and compares bytes. Rank 0 prints a digest
 * of all results.
 *   ordered [COUNT...] */
#include "tests/helper/base/program.h"

#include "tests/helper/mpi/collectives.h"

#define GUARD 16

static uint64_t g_digest = kDigest;

/* Returns a value whose sums must be rounded: it uses all bits of the mantissa, and exponents
 * differ by up to 40. A few values are not finite, and a few are -0 on all ranks. */
static double value(int i, int rank) {
  const int kind = i % 9973;
  if (kind == 100 && rank == 1) return INFINITY;
  if (kind == 101) return rank == 0 ? INFINITY : rank == 1 ? -INFINITY : 1;
  if (kind == 102 && rank == 0) return NAN;
  if (kind == 103) return -0.0;
  uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15u + (uint64_t)(rank + 1) * 0xd1b54a32d192ed03u;
  x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
  x ^= x >> 29;
  return ldexp((double)(int64_t)x, -63 - (int)(x % 41));
}

/* Writes the sum of element i over all ranks, in rank order, as bytes of the type. All NaNs become
 * the same NaN, as in slimpi. */
static void ordered_sum(int i, int doubles, void* to) {
  static const uint32_t float_nan = 0x7fc00000;
  static const uint64_t double_nan = UINT64_C(0x7ff8000000000000);
  float total = (float)value(i, 0);
  double wide = value(i, 0);
  for (int rank = 1; rank < g_size; ++rank) {
    total += (float)value(i, rank);
    wide += value(i, rank);
  }
  if (isnan(wide)) memcpy(&wide, &double_nan, sizeof wide);
  if (isnan(total)) memcpy(&total, &float_nan, sizeof total);
  memcpy(to, doubles ? (void*)&wide : (void*)&total, doubles ? sizeof wide : sizeof total);
}

static void test(const char* collective, int doubles, int count) {
  const size_t width = doubles ? sizeof(double) : sizeof(float);
  const MPI_Datatype type = doubles ? MPI_DOUBLE : MPI_FLOAT;
  const uint64_t before = compressed_calls();
  int blocks[MOST_RANKS], first = 0, length = count;
  char what[100], right[sizeof(double)];
  if (names_blocks(collective)) {
    count = (int)divide_blocks(collective, count, g_size, blocks);
    for (int rank = 0; rank < g_rank; ++rank) first += blocks[rank];
    length = blocks[g_rank];
  }
  char* const in = (char*)malloc((size_t)count * width);
  char* const memory = (char*)malloc(((size_t)length + 2 * GUARD) * width);
  char* const out = memory + GUARD * width;
  memset(memory, 0xa5, ((size_t)length + 2 * GUARD) * width);
  for (int i = 0; i < count; ++i) {
    const double wide = value(i, g_rank);
    const float narrow = (float)wide;
    memcpy(in + (size_t)i * width, doubles ? (const void*)&wide : (const void*)&narrow, width);
  }
  const int code = sum_elements(collective, in, out, count, blocks, 0, type, MPI_COMM_WORLD);
  snprintf(what, sizeof what, "%s of %d %s", collective, count, doubles ? "doubles" : "floats");
  check(code == MPI_SUCCESS, what);
  int wrong = 0;
  for (int i = 0; i < length; ++i) {
    ordered_sum(first + i, doubles, right);
    wrong += memcmp(out + (size_t)i * width, right, width) != 0;
  }
  check(wrong == 0, what);
  for (size_t i = 0; i < GUARD * width; ++i)
    wrong +=
        (unsigned char)memory[i] != 0xa5 || (unsigned char)out[(size_t)length * width + i] != 0xa5;
  check(wrong == 0, "the memory around a result");
  check(compressed_calls() == before + 1, "slimpi makes the sum");
  g_digest = digest_of(out, (size_t)length * width, g_digest);
  free(in);
  free(memory);
}

int main(int argc, char** argv) {
  static const char* const collectives[] = {
    "Allreduce",
    "Reduce_scatter_block",
    "Reduce_scatter",
    "Iallreduce",
    "Ireduce_scatter_block",
    "Ireduce_scatter",
#if HAS_PERSISTENT_SUMS
    "Allreduce_init",
    "Reduce_scatter_block_init",
    "Reduce_scatter_init",
#endif
  };
  uint64_t all[MOST_RANKS];
  begin_mpi_with(MPI_THREAD_MULTIPLE);
  for (int arg = 1; arg < argc; ++arg)
    for (int doubles = 0; doubles < 2; ++doubles)
      for (size_t i = 0; i < sizeof collectives / sizeof *collectives; ++i)
        test(collectives[i], doubles, atoi(argv[arg]));
  MPI_Gather(&g_digest, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (g_rank == 0)
    printf("%016llx\n", (unsigned long long)digest_of(all, (size_t)g_size * sizeof *all, kDigest));
  return end_mpi();
}
