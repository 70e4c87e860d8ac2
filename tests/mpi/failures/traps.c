/* SPDX-License-Identifier: BSD-3-Clause */
/* traps finite|special|exact|invalid [COUNT]: float sums of a program whose floating-point
 * exceptions end it. Nothing but its own sums, as plain MPI makes them, may raise one, and a call
 * leaves its environment as it was, flags included.
 * finite: numbers whose sum is rounded, subnormal ones among them, compressed between nodes;
 * special: small integers with a NaN and an infinity; exact: small integers; invalid: a signaling
 * NaN, which ends the program inside a node as with plain MPI. */
#include "tests/helper/base/program.h"

#include <fenv.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

static float of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void fill(float* data, size_t n, const char* kind, int call) {
  uint32_t state = 12345u + 977u * (uint32_t)g_rank + 31u * (uint32_t)call;
  for (size_t i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    data[i] = (float)((int)(state >> 20) - 2048);
    if (!strcmp(kind, "finite"))
      data[i] = of_bits((state & 0x807fffffu) | (i % 7 == 0 ? 0 : 60 + (state >> 8) % 80) << 23);
  }
  if (!strcmp(kind, "special") && g_rank == 0) {
    data[n / 3] = of_bits(0x7fc00001u);
    data[n / 2] = INFINITY;
  }
  if (!strcmp(kind, "invalid")) data[n / 2] = of_bits(0x7f800001u);
}

struct environment {
  int traps, flags, rounding;
  unsigned mxcsr;
};

static struct environment environment(void) {
  struct environment now = {fegetexcept(), fetestexcept(FE_ALL_EXCEPT), fegetround(), 0};
#if defined(__SSE__)
  now.mxcsr = _mm_getcsr();
#endif
  return now;
}

static int compare(float* in, float* out, size_t n, const char* kind, int call) {
  fill(in, n, kind, call);
  const struct environment before = environment();
  MPI_Allreduce(in, out, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  const struct environment after = environment();
  if (memcmp(&before, &after, sizeof before) != 0) {
    fprintf(stderr, "rank %d, %s, call %d: traps %x, flags %x, mxcsr %x; before: %x, %x, %x\n",
            g_rank, kind, call, (unsigned)after.traps, (unsigned)after.flags, after.mxcsr,
            (unsigned)before.traps, (unsigned)before.flags, before.mxcsr);
    return 1;
  }
  if (!strcmp(kind, "exact") && out[0] != truncf(out[0])) return 1;
  return 0;
}

int main(int argc, char** argv) {
  begin_mpi();
  if (argc < 2) MPI_Abort(MPI_COMM_WORLD, 2);
  const size_t n = argc > 2 ? (size_t)atol(argv[2]) : 20000;
  float* const in = malloc(n * sizeof *in);
  float* const out = malloc(n * sizeof *out);
  if (in == NULL || out == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  /* The first calls are not checked, because MPI may raise exceptions of its own when it connects
   * ranks. */
  memset(in, 0, n * sizeof *in);
  for (int call = 0; call < 3; ++call)
    PMPI_Allreduce(in, out, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(FE_ALL_EXCEPT);
  for (int call = 0; call < 12; ++call) g_failures += compare(in, out, n, argv[1], call);
  fedisableexcept(FE_ALL_EXCEPT);
  const int all = all_failures();
  /* MPI's end may be inexact, too. The library writes its report while the exceptions below are
   * enabled. */
  feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
  if (g_rank == 0) printf("%s %s, %d ranks\n", all == 0 ? "ok" : "FAILED", argv[1], g_size);
  free(in);
  free(out);
  MPI_Finalize();
  return all != 0;
}
