/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums and all-gathers of 16-bit floats: within the bound on every rank, with the same bytes, each
 * the float32 sum rounded once; nothing behind the output is written. Rank 0 prints a digest of the
 * results.
 *   short_floats TYPE [WAY [BOUND [FIRST]]]
 *     TYPE   float16, real2 or bfloat16; exits with 77 where this MPI's header lacks it
 *     WAY    Allreduce, Iallreduce, Allreduce_init, large (MPI_Allreduce_c), Allgatherv or another
 *            all-gather of unequal blocks: how all sums but the first are made
 *     BOUND  quantization steps of 8 bits of each rank's values; `mpi`: the bytes are MPI's own;
 *            `any`: the ranks need not have the same bytes, and there is no bound
 *     FIRST  a type of the first sum, which is not checked */
#include "tests/helper/base/program.h"

#include "tests/helper/mpi/collectives.h"
#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#define COUNT 10241 /* 20 buckets of 512, and one value */
#define BEHIND 64
static int sums;
static uint64_t digest = kDigest;
static uint16_t in[COUNT], got[COUNT + BEHIND], exact[COUNT];
static float wide[COUNT], wanted[COUNT];
static int owner[COUNT], first[COUNT], last[COUNT]; /* the bucket, and the rank of its block */
static MPI_Datatype type;
static int fraction, least, exponents; /* bits, the least normal exponent, 2^bits - 1 */
static const char *way = "Allreduce", *bound = "1";

/* Returns the value of a code, by the definition of the format. */
static double value_of(uint16_t code) {
  const int exponent = (code & 0x7fff) >> fraction, rest = code & ((1 << fraction) - 1);
  double value = 0;
  if (exponent == exponents)
    value = rest == 0 ? INFINITY : NAN;
  else if (exponent == 0)
    value = ldexp(rest, least - fraction);
  else
    value = ldexp(rest + (1 << fraction), exponent - 1 + least - fraction);
  return (code & 0x8000) != 0 ? -value : value;
}

/* Returns the code of the nearest value and, if two are equally near, the even one. Not for
 * NaNs. */
static uint16_t code_of(double value) {
  const uint16_t sign = signbit(value) ? 0x8000 : 0;
  int exponent = 0;
  if (isinf(value)) return (uint16_t)(sign | exponents << fraction);
  (void)frexp(value, &exponent);
  if (value == 0 || exponent - 1 < least) exponent = least + 1;
  const double places = nearbyint(ldexp(fabs(value), fraction - exponent + 1));
  const double code = places + ldexp(exponent - 1 - least, fraction);
  const double infinity = ldexp(exponents, fraction);
  return (uint16_t)(sign | (uint16_t)(code < infinity ? code : infinity));
}

/* Returns a value from -1 to 1. */
static double noise(int i, int r) {
  uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15u + (uint64_t)(r + 1) * 0xd1b54a32d192ed03u;
  x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
  return (double)(int64_t)(x ^ x >> 29) * 0x1p-63;
}

/* The first sum is a blocking allreduce. */
static const char* collective(void) {
  return sums == 0 || strcmp(way, "large") == 0 ? "Allreduce" : way;
}

static int sum_or_gather(const void* from, const int* blocks) {
  const int large = sums != 0 && strcmp(way, "large") == 0;
  return sum_elements(collective(), from, got, COUNT, blocks, large, type, MPI_COMM_WORLD);
}

/* Finds the block of each element, and its bucket, which begins in the block. Without blocks the
 * vector is one. */
static void find_buckets(const int* blocks) {
  int rank = 0, begin = 0, end = blocks == NULL ? COUNT : blocks[0];
  for (int i = 0; i < COUNT; ++i) {
    while (i >= end) begin = end, end += blocks[++rank];
    owner[i] = rank;
    first[i] = begin + (i - begin) / 512 * 512;
    last[i] = first[i] + 512 < end ? first[i] + 512 : end;
  }
}

/* Makes a sum and checks it. The result may be off by `bound` steps of `width` and its own
 * rounding; if `width` is 0, it must be the rounded sum itself. An element whose sum is not finite
 * must not be finite in the result, and all elements outside its bucket must be. */
static void sum(const char* name, double width, int in_place) {
  int bad = 0, worst = 0;
  const uint16_t nothing = 0xdead;
  for (int i = 0; i < COUNT + BEHIND; ++i) got[i] = in_place && i < COUNT ? in[i] : nothing;
  int blocks[MOST_RANKS];
  const int gathers = names_gather(collective());
  if (gathers) divide_blocks(way, COUNT, g_size, blocks);
  find_buckets(gathers ? blocks : NULL);
  const double of_bound = gathers || !names_gather(way) ? atof(bound) : 1;
  const double step = of_bound * width * g_size / 255 * 1.01;
  for (int i = 0; i < COUNT; ++i)
    wide[i] = gathers && owner[i] != g_rank ? 0 : (float)value_of(in[i]);
  PMPI_Allreduce(wide, wanted, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  uint16_t kept[COUNT];
  memcpy(kept, in, sizeof in);
  if (sum_or_gather(in_place ? MPI_IN_PLACE : in, blocks) != MPI_SUCCESS) bad = 1;
  if (memcmp(in, kept, sizeof in) != 0) bad = 2;
  for (int i = COUNT; i < COUNT + BEHIND; ++i)
    if (got[i] != nothing) bad = 3;
  ++sums;
  if (strcmp(bound, "mpi") == 0) {
    PMPI_Allreduce(in, exact, COUNT, type, MPI_SUM, MPI_COMM_WORLD);
    if (memcmp(got, exact, sizeof exact) != 0) bad = 4;
  } else if (strcmp(bound, "any") != 0) {
    for (int i = 0; i < COUNT; ++i) {
      const double value = value_of(got[i]), sum = wanted[i];
      int near = isfinite(sum);
      for (int j = first[i]; j < last[i]; ++j)
        near = near && isfinite(wanted[j]);
      if (!isfinite(sum))
        bad = isfinite(value) ? 5 : bad;
      else if (near && width == 0)
        bad = got[i] != code_of(sum) ? 6 : bad;
      else if (near && !(fabs(value - sum) <= step + ldexp(fabs(sum) + step, -fraction - 1)))
        bad = 7;
    }
    if (!has_rank_0_s(got, sizeof exact)) bad = 8;
  }
  digest = digest_of(got, sizeof exact, digest);
  PMPI_Allreduce(&bad, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (worst != 0 && g_rank == 0) printf("%s: wrong (%d)\n", name, worst);
  g_failures += worst != 0;
}

static void fill(double offset, double width) {
  for (int i = 0; i < COUNT; ++i) in[i] = code_of(offset + width * noise(i, g_rank));
}

static int find_type(const char* name) {
  fraction = 10, least = -14, exponents = 31;
#ifdef MPIX_C_FLOAT16
  if (strcmp(name, "float16") == 0) type = MPIX_C_FLOAT16;
#endif
#ifdef MPI_REAL2
  if (strcmp(name, "real2") == 0) type = MPI_REAL2;
#endif
#ifdef MPIX_BFLOAT16
  if (strcmp(name, "bfloat16") == 0) type = MPIX_BFLOAT16;
#endif
  if (strcmp(name, "bfloat16") == 0) fraction = 7, least = -126, exponents = 255;
  return type != MPI_DATATYPE_NULL;
}

int main(int argc, char** argv) {
  begin_mpi_with(MPI_THREAD_MULTIPLE);
  type = MPI_DATATYPE_NULL;
  if (argc < 2 || !find_type(argv[1])) {
    MPI_Finalize();
    return 77;
  }
  if (argc > 4) {
    find_type(argv[4]);
    MPI_Allreduce(in, got, 100, type, MPI_SUM, MPI_COMM_WORLD);
    find_type(argv[1]);
  }
  if (argc > 2) way = argv[2];
  if (argc > 3) bound = argv[3];
  const double greatest = value_of((uint16_t)((exponents << fraction) - 1));
  for (int in_place = 0; in_place < 2; ++in_place) {
    fill(0, 1);
    sum("noise", 2, in_place);
    fill(100, 1); /* 2 at most, and a place of the type at either end */
    sum("far from zero", 2 + ldexp(128, -fraction), in_place);
    /* If every addition rounds, the result is not the float32 sum rounded once. */
    for (int i = 0; i < COUNT; ++i) in[i] = code_of(g_rank == 0 ? ldexp(2, fraction) : 1);
    sum("constant", 0, in_place);
    for (int i = 0; i < COUNT; ++i) in[i] = 1;
    sum("the least subnormal number", 0, in_place);
    for (int i = 0; i < COUNT; ++i) in[i] = 0;
    sum("zero", 0, in_place);
    for (int i = 0; i < COUNT; ++i) in[i] = code_of(g_rank == 0 ? 0 : -greatest * 0.75);
    sum(g_size > 2 ? "overflow" : "large", 0, in_place);
  }
  fill(0, 1);
  if (g_rank == g_size - 1) in[5000] = code_of(INFINITY), in[5001] = code_of(-INFINITY);
  if (g_rank == 0)
    in[10240] = (uint16_t)(code_of(INFINITY) | 5); /* a NaN, in a bucket of its own */
  sum("not finite", 2, 0);
  fill(0, 1);
  sum("noise again", 2, 0);
  if (g_rank == 0) printf("%d sums, %016llx\n", sums, (unsigned long long)digest);
  return end_mpi();
}
