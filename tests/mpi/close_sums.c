/* SPDX-License-Identifier: BSD-3-Clause */
/* close_sums SUMS LATE COUNT...: so many float sums, of these counts in turn; says whether all
 * ranks had the same bytes, whether they kept to the bounds of 8 bits, and whether all were exact.
 * LATE: at the first so many sums a rank comes late; another one for each of the four ways that
 * auto tries in turn. */
#define _DEFAULT_SOURCE
#include "tests/helper/program.h"

enum { kMost = 65536 };
static float in[kMost], out[kMost];

static float element(int rank, int sum, int i) {
  return (float)((i * 37 + rank * 101 + sum * 7) % 1009) / 1009.0f - 0.5f;
}

int main(int argc, char** argv) {
  unsigned all[4] = {0, 0, 0, 0}; /* hash, its complement, beyond the bound, not exact */
  begin_mpi();
  const int sums = argc > 3 ? atoi(argv[1]) : 0, late = argc > 3 ? atoi(argv[2]) : 0;
  for (int sum = 0; sum < sums; ++sum) {
    const int count = atoi(argv[3 + sum % (argc - 3)]);
    if (count < 1 || count > kMost) MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < count; ++i) {
      in[i] = element(g_rank, sum, i);
      out[i] = -7;
    }
    /* A rank that is late measures a short time, the others a long one. */
    if (sum < late && g_rank == sum / (argc - 3) % 4 % g_size) usleep(3000);
    MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const unsigned char* const bytes = (const unsigned char*)out;
    for (size_t i = 0; i < sizeof *out * (size_t)count; ++i)
      all[0] = (all[0] ^ bytes[i]) * 16777619u;
    /* bytegrad: half a unit of every addend, 1/255 at most, and half a unit of the sum, size/255 at
     * most. packed: a step of each, of twice that. */
    for (int i = 0; i < count; ++i) {
      double exact = 0;
      for (int r = 0; r < g_size; ++r) exact += element(r, sum, i);
      if (!(out[i] - exact < 4 * g_size / 255.0 && exact - out[i] < 4 * g_size / 255.0)) all[2] = 1;
      if (out[i] != (float)exact) all[3] = 1;
    }
  }
  all[1] = ~all[0];
  MPI_Allreduce(MPI_IN_PLACE, all, 4, MPI_UNSIGNED, MPI_MAX, MPI_COMM_WORLD);
  if (g_rank == 0)
    printf("%s %s %s\n", all[0] == ~all[1] ? "same" : "different", all[2] ? "off" : "close",
           all[3] ? "compressed" : "exact");
  MPI_Finalize();
  return 0;
}
