/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices of low rank in GPU memory, summed by powersgd: the sum comes back, in the same bytes on
 * every rank, the last of which has its buffers in host memory. Usage: lowrank COLUMNS COUNT. Run
 * under the preload; exits 77 without a GPU. */
#include "tests/helper/base/program.h"

#include "tests/helper/devices/gpu.h"

static float value(size_t i, size_t columns, int call, int rank) {
  const double row = (double)(i / columns), column = (double)(i % columns);
  return (float)((rank + 1) * sin(0.3 * row + call) * cos(0.2 * column) +
                 (2 - rank) * cos(0.5 * row) * sin(0.1 * column + call));
}

int main(int argc, char** argv) {
  begin_mpi();
  exit_unless_0(gpu_open());
  if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
  const size_t columns = (size_t)atol(argv[1]), count = (size_t)atol(argv[2]);
  const size_t bytes = count * sizeof(float);
  const enum gpu_memory kind = g_rank == g_size - 1 ? GPU_HOST : GPU_DEVICE;
  float *in = gpu_take(kind, bytes), *out = gpu_take(kind, bytes);
  float *values = malloc(bytes), *result = malloc(bytes);
  for (int call = 0; call < 5; ++call) {
    for (size_t i = 0; i < count; ++i) values[i] = value(i, columns, call, g_rank);
    gpu_copy(in, kind, values, GPU_HOST, bytes);
    MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    gpu_copy(result, GPU_HOST, out, kind, bytes);
    check(has_rank_0_s(result, bytes), "other bytes than rank 0");
    double error = 0, norm = 0;
    for (size_t i = 0; i < count; ++i) {
      double sum = 0;
      for (int r = 0; r < g_size; ++r) sum += value(i, columns, call, r);
      error += (result[i] - sum) * (result[i] - sum);
      norm += sum * sum;
    }
    if (call < 3 || sqrt(error / norm) < 0.05) continue; /* the first calls look for directions */
    printf("rank %d, call %d: relative error %g\n", g_rank, call, sqrt(error / norm));
    ++g_failures;
  }
  free(values);
  free(result);
  gpu_give_back(kind, in);
  gpu_give_back(kind, out);
  return end_mpi();
}
