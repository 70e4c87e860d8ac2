/* SPDX-License-Identifier: BSD-3-Clause */
/* One sum of COUNT floats through MPI_Allreduce_c, in place, on two ranks that are a node each;
 * meant for counts that no 32-bit integer holds. Every element is checked against its bound, and
 * both ranks' bytes against each other.
 * Usage: huge COUNT BITS. A rank holds 4 * COUNT bytes, and slimpi's messages beside them. */
#include "tests/helper/base/program.h"

/* The input is a ramp whose period is neither a power of two nor a divisor of one, so that a wrong
 * offset shows. In most buckets of 2048 a rank's values are on one slope. */
#define PERIOD 6000011
#define BUCKET 2048
static const double slopes[2] = {1, 3};

/* Returns the input of `rank` at position `at` of a period. */
static double value(uint64_t at, int rank) {
  return slopes[rank] * (double)at / BUCKET;
}

static uint64_t next_place(uint64_t at) {
  return at + 1 == PERIOD ? 0 : at + 1;
}

int main(int argc, char** argv) {
  begin_mpi();
  if (argc < 3 || g_size != 2) MPI_Abort(MPI_COMM_WORLD, 2);
  const uint64_t count = strtoull(argv[1], NULL, 10);
  const double steps = (1 << atoi(argv[2])) - 1;
  float* x = malloc(count * sizeof *x);
  int64_t room = x != NULL, all_have_room = 0;
  PMPI_Allreduce(&room, &all_have_room, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
  if (!all_have_room) {
    if (g_rank == 0) printf("no memory for %" PRIu64 " floats\n", count);
    MPI_Finalize();
    return 77;
  }
  for (uint64_t i = 0, at = 0; i < count; ++i, at = next_place(at)) x[i] = (float)value(at, g_rank);
  const double start = MPI_Wtime();
  const int code =
      MPI_Allreduce_c(MPI_IN_PLACE, x, (MPI_Count)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - start;
  if (code != MPI_SUCCESS)
    g_failures = 1, printf("rank %d: MPI_Allreduce_c returned %d\n", g_rank, code);

  /* The bound is half a step of each rank's bucket, half a step of the sum's bucket, whose range
   * grows by the first rounding, and the rounding of floats. A bucket at the end of a ramp has the
   * range of the whole ramp. */
  const double first = (slopes[0] + slopes[1]) / steps / 2;
  const double bound = first + (slopes[0] + slopes[1] + 2 * first) / steps / 2 + 0.01;
  double most = 0;
  uint64_t checked = 0, last = 0, digest = 1469598103934665603u;
  for (uint64_t i = 0, at = 0; i < count; ++i, at = next_place(at)) {
    uint32_t bits;
    memcpy(&bits, x + i, sizeof bits);
    digest = (digest ^ bits) * 1099511628211u;
    if (at < BUCKET || at + BUCKET >= PERIOD) continue;
    const double error = x[i] - (value(at, 0) + value(at, 1));
    const double size_of_error = error < 0 ? -error : error;
    if (size_of_error > most) most = size_of_error;
    if (!(size_of_error <= bound) && ++g_failures < 10)
      printf("rank %d: element %" PRIu64 " is %g, off by %g of %g\n", g_rank, i, x[i], error,
             bound);
    ++checked;
    last = i;
  }
  uint64_t least = 0, greatest = 0;
  PMPI_Allreduce(&digest, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
  PMPI_Allreduce(&digest, &greatest, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  if (least != greatest)
    g_failures = 1, printf("rank %d: bytes differ between the ranks\n", g_rank);
  if (g_rank == 0)
    printf("%" PRIu64 " floats in %.1f s: %" PRIu64 " checked up to number %" PRIu64
           ", off by at most %.3f of %.3f; bytes %016" PRIx64 " on both ranks\n",
           count, seconds, checked, last, most, bound, digest);
  free(x);
  return end_mpi();
}
