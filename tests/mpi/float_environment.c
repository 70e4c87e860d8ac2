/* SPDX-License-Identifier: BSD-3-Clause */
/* float_environment ENVIRONMENT REPEATS COUNT...: float sums of ranks on one node, in a
 * floating-point environment of the program's own. Every one of REPEATS identical calls gives the
 * bytes of MPI's own sum in that environment. ENVIRONMENT is default, ftz, up, down or zero on all
 * ranks, or, with "-one", on rank 0 only. */
#include <fenv.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

enum { rounding, one_nan, two_nans, all_nans, same_nan, infinities, kinds };
static const char* const names[kinds] = {"subnormal and rounded numbers",
                                         "a NaN on one rank",
                                         "NaNs on two ranks",
                                         "NaNs on all ranks",
                                         "the same NaN on all ranks",
                                         "infinities of both signs and NaNs"};
static int rank, ranks;

static void set_environment(const char* name) {
  if (strstr(name, "-one") && rank != 0) return;
  if (!strncmp(name, "up", 2)) fesetround(FE_UPWARD);
  if (!strncmp(name, "down", 4)) fesetround(FE_DOWNWARD);
  if (!strncmp(name, "zero", 4)) fesetround(FE_TOWARDZERO);
#if defined(__SSE__)
  if (!strncmp(name, "ftz", 3)) _mm_setcsr(_mm_getcsr() | 0x8040u);
#endif
}

/* What the environment is, without flags. */
static unsigned control(void) {
#if defined(__SSE__)
  return _mm_getcsr() & ~0x3fu;
#else
  return (unsigned)fegetround();
#endif
}

static float of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t draw(void) {
  static uint64_t state;
  if (state == 0) state = 7919u * (uint64_t)(rank + 1);
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 32);
}

/* Every fifth number is near the least normal one, the others have exponents far apart. Special
 * values come late, when much of the vector is summed. */
static void fill(float* data, size_t n, int kind) {
  for (size_t i = 0; i < n; ++i) {
    const uint32_t word = draw(), exponent = i % 5 == 0 ? word % 3 : 110 + word % 20;
    data[i] = of_bits((draw() & 0x807fffffu) | exponent << 23);
  }
  const uint32_t mine = 0x7fc00000u + 3u * (uint32_t)rank + 1u;
  for (size_t i = n - n / 8; i < n && kind != rounding; i += 97) {
    const int holder = (int)(i % (size_t)ranks), next = (holder + 1) % ranks;
    const int here = rank == holder, there = rank == next;
    if (kind == one_nan && here) data[i] = of_bits(mine | 0x80000000u * (i % 2));
    if (kind == two_nans && (here || there)) data[i] = of_bits(mine);
    if (kind == all_nans) data[i] = of_bits(mine);
    if (kind == same_nan) data[i] = of_bits(0xffc00000u);
    if (kind == infinities && here) data[i] = INFINITY;
    if (kind == infinities && there) data[i] = -INFINITY;
    if (kind == infinities && !here && !there && i % 2 == 0) data[i] = of_bits(mine);
  }
}

static size_t first_difference(const float* a, const float* b, size_t n) {
  size_t i = 0;
  while (i < n && memcmp(a + i, b + i, sizeof *a) == 0) ++i;
  return i;
}

static int check(const char* environment, int kind, size_t n, int in_place, int repeats) {
  int failures = 0;
  float* const in = malloc(n * sizeof *in);
  float* const got = malloc(n * sizeof *got);
  float* const want = malloc(n * sizeof *want);
  if (in == NULL || got == NULL || want == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  fill(in, n, kind);
  const unsigned before = control();
  memcpy(want, in, n * sizeof *in);
  PMPI_Allreduce(in_place ? MPI_IN_PLACE : in, want, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < repeats && failures == 0; ++i) {
    memcpy(got, in, n * sizeof *in);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : in, got, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const size_t at = first_difference(got, want, n);
    if (at != n) {
      uint32_t bits[2];
      memcpy(&bits[0], got + at, sizeof *got);
      memcpy(&bits[1], want + at, sizeof *want);
      fprintf(stderr, "rank %d of %d, %s, %s%s, call %d: element %zu of %zu is %08x, not %08x\n",
              rank, ranks, environment, names[kind], in_place ? ", in place" : "", i, at, n,
              (unsigned)bits[0], (unsigned)bits[1]);
      ++failures;
    }
    if (control() != before) {
      fprintf(stderr, "rank %d, %s: another environment after the call\n", rank, environment);
      ++failures;
    }
    int all = 0; /* nobody stops alone */
    PMPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    failures = all;
  }
  free(in);
  free(got);
  free(want);
  return failures;
}

int main(int argc, char** argv) {
  int failures = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 4) MPI_Abort(MPI_COMM_WORLD, 2);
  /* MPI may take other algorithms after its first calls. */
  for (int i = 0; i < 10; ++i) {
    float one = 1;
    PMPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  set_environment(argv[1]);
  for (int i = 3; i < argc; ++i)
    for (int kind = 0; kind < kinds; ++kind)
      for (int in_place = 0; in_place < 2; ++in_place)
        failures += check(argv[1], kind, (size_t)atol(argv[i]), in_place, atoi(argv[2]));
  if (rank == 0) printf("%s %s, %d ranks\n", failures == 0 ? "ok" : "FAILED", argv[1], ranks);
  MPI_Finalize();
  return failures != 0;
}
