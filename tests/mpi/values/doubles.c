/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of doubles: those that float32 can hold are within the bound on every rank, with the same
 * bytes; all others have the bytes of MPI's own sum, and the input is as it was. Rank 0 prints how
 * many of each kind there were, and a digest of the results.
 *   doubles [double_precision|real8|nonblocking] */
#include "tests/helper/base/program.h"

#include "tests/helper/mpi/collectives.h"

#define COUNT 10241 /* 20 blocks of 512, and one value */
static int held, left, nonblocking;
static uint64_t digest = kDigest;
static double in[COUNT], kept[COUNT], got[COUNT], exact[COUNT];
static MPI_Datatype type = MPI_DOUBLE;

/* Returns a value from -1 to 1 that uses all bits of a double. */
static double noise(int i, int r) {
  uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15u + (uint64_t)(r + 1) * 0xd1b54a32d192ed03u;
  x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
  return (double)(int64_t)(x ^ x >> 29) * 0x1p-63;
}

/* Makes a sum and checks it. `bound`: the greatest error if slimpi makes the sum; 0 if the sum must
 * be exact; -1 if it must be MPI's own. */
static void sum(const char* name, double bound, int in_place) {
  int bad = 0, worst = 0;
  memcpy(kept, in, sizeof in);
  memcpy(got, in, sizeof in);
  PMPI_Allreduce(in, exact, COUNT, type, MPI_SUM, MPI_COMM_WORLD);
  const void* const from = in_place ? MPI_IN_PLACE : in;
  const char* const collective = nonblocking && held + left > 0 ? "Iallreduce" : "Allreduce";
  const int code = sum_elements(collective, from, got, COUNT, NULL, 0, type, MPI_COMM_WORLD);
  if (code != MPI_SUCCESS || memcmp(in, kept, sizeof in) != 0) bad = 1;
  if (bound < 0 && memcmp(got, exact, sizeof got) != 0) bad = 2;
  for (int i = 0; bound >= 0 && i < COUNT; ++i)
    if (!(fabs(got[i] - exact[i]) <= bound)) bad = 3;
  /* A sum with MPI's own bytes was not compressed. */
  if (bound > 0 && memcmp(got, exact, sizeof got) == 0) bad = 4;
  if (!has_rank_0_s(got, sizeof got)) bad = 5;
  digest = digest_of(got, sizeof got, digest);
  PMPI_Allreduce(&bad, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (worst != 0 && g_rank == 0) printf("%s: wrong (%d)\n", name, worst);
  g_failures += worst != 0;
  ++*(bound < 0 ? &left : &held);
}

static void fill(double offset, double width) {
  for (int i = 0; i < COUNT; ++i) in[i] = offset + width * noise(i, g_rank);
}

/* Sums a value that only the last rank has. slimpi must leave the sum to MPI. */
static void one(const char* name, double value) {
  fill(0, 1);
  if (g_rank == g_size - 1) in[5000] = value;
  sum(name, -1, 0);
}

int main(int argc, char** argv) {
  begin_mpi_with(MPI_THREAD_MULTIPLE);
  nonblocking = argc > 1 && strcmp(argv[1], "nonblocking") == 0;
  if (argc > 1 && strcmp(argv[1], "double_precision") == 0) type = MPI_DOUBLE_PRECISION;
  if (argc > 1 && strcmp(argv[1], "real8") == 0) type = MPI_REAL8;
  /* The bound is half a quantization step of each input and half a step of the sum, at 8 bits, and
   * 1 % more for rounding. */
  const double step = g_size * 2.0 / 255 * 1.01;
  for (int in_place = 0; in_place < 2; ++in_place) {
    fill(0, 1);
    sum("noise", step, in_place);
    fill(1000, 1);
    sum("far from zero", step, in_place);
    fill(1e-20, 1e-20);
    sum("tiny", step * 1e-20, in_place);
    fill(1e9, 1e-3);
    sum("hardly different", -1, in_place);
    for (int i = 0; i < COUNT; ++i) in[i] = 0.1;
    sum("constant, no float", -1, in_place);
    for (int i = 0; i < COUNT; ++i) in[i] = 0.5;
    sum("constant", 0, in_place);
    for (int i = 0; i < COUNT; ++i) in[i] = 0;
    sum("zero", 0, in_place);
    fill(0, 1e-300);
    sum("below float32", -1, in_place);
    fill(0, 1e300);
    sum("above float32", -1, in_place);
    fill(0, 2e38);
    sum("a sum above float32", -1, in_place);
  }
  /* Large values on one rank only: its blocks of 512 values lie among other blocks. */
  fill(0, 1);
  for (int i = 2048; g_rank == 1 && i < 4096; ++i) in[i] = 1e9 + 1e-3 * noise(i, g_rank);
  sum("one block of one rank", -1, 0);
  fill(0, 1);
  if (g_rank == 0) in[7] = 1e-300, in[8] = 5e-324, in[9] = -0.0;
  sum("some tiny", step, 0);
  one("1e300", 1e300);
  one("infinity", INFINITY);
  one("NaN", NAN);
  fill(0, 1);
  sum("noise again", step, 0);
  if (g_rank == 0) printf("%d held, %d left, %016llx\n", held, left, (unsigned long long)digest);
  return end_mpi();
}
