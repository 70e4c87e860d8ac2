/* SPDX-License-Identifier: BSD-3-Clause */
/* How many functions of CUDA's driver a sum calls: each costs the CPU 0.2 to 5 microseconds, and
 * with many ranks they, not the wire, limit a GPU's sums. Counted on the fake driver. Queries
 * of events and streams are not counted: how many there are depends on how fast others are. Usage:
 * budget MIB MOST [COPIES], the calls that a sum of so many MiB may need on any rank, and how many
 * of them may be copies; exits 77 without the fake driver. */
#include "tests/helper/program.h"

#include "tests/helper/fake_driver.h"
#include "tests/helper/gpu.h"

static const char* const kNames[] = {
    "cuLaunchKernel",        "cuMemcpyAsync",      "cuMemsetD32Async",
    "cuEventRecord",         "cuStreamWaitEvent",  "cuStreamIsCapturing",
    "cuCtxPushCurrent_v2",   "cuCtxPopCurrent_v2", "cuThreadExchangeStreamCaptureMode",
    "cuPointerGetAttributes"};
enum { NAMES = sizeof kNames / sizeof *kNames };

/* Counts the calls of each function during one sum. */
static void count_sum(float* memory, int count, long* calls) {
  for (int i = 0; i < NAMES; ++i) calls[i] = -(long)CALL_FAKE(calls, kNames[i]);
  long queries = -(long)CALL_FAKE(calls, "cuEventQuery");
  MPI_Allreduce(MPI_IN_PLACE, memory, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < NAMES; ++i) calls[i] += (long)CALL_FAKE(calls, kNames[i]);
  queries += (long)CALL_FAKE(calls, "cuEventQuery");
  /* Queries are left out: a query makes its context current and restores the former context. */
  for (int i = 6; i <= 7; ++i) calls[i] -= queries;
  calls[8] -= 2 * queries;
}

int main(int argc, char** argv) {
  begin_mpi();
  if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
  if (gpu_open() != 0 || FIND_FAKE(calls) == NULL) MPI_Abort(MPI_COMM_WORLD, 77);
  const int count = atoi(argv[1]) << 18;
  float* const memory = gpu_take(GPU_DEVICE, (size_t)count * sizeof(float));
  float* const zeros = calloc((size_t)count, sizeof(float));
  gpu_copy(memory, GPU_DEVICE, zeros, GPU_HOST, (size_t)count * sizeof(float));
  /* Sums of host memory come first: messages are short until call 4, at which the ranks look again
   * whether they may be long. */
  MPI_Allreduce(MPI_IN_PLACE, zeros, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  free(zeros);
  long calls[NAMES];
  for (int i = 0; i < 4; ++i) count_sum(memory, count, calls);
  long total = 0;
  for (int i = 0; i < NAMES; ++i) {
    total += calls[i];
    if (g_rank == 0) printf("%8ld %s\n", calls[i], kNames[i]);
  }
  long most = 0, copies = calls[1], most_copies = 0;
  PMPI_Allreduce(&total, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
  PMPI_Allreduce(&copies, &most_copies, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
  if (g_rank == 0)
    printf("%8ld calls, %ld copies in %s MiB between %d nodes, %s calls allowed\n", most,
           most_copies, argv[1], g_size, argv[2]);
  gpu_give_back(GPU_DEVICE, memory);
  MPI_Finalize();
  return most <= 0 || most > atol(argv[2]) || (argc > 3 && most_copies > atol(argv[3]));
}
