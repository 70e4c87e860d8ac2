/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between a GPU and host memory that nobody pinned block the CPU and are slow; the fake
 * driver counts them. Usage: pinned [mixed] [refuse] [shared] [lossy]; exits 77 without it.
 * mixed   ranks of odd numbers have their buffers in host memory
 * shared  the ranks of a node exchange through host memory that they share
 * lossy   the sums are not exact, so nothing is said about them
 * refuse  the driver pins no memory that it has not allocated: sums are right all the same
 * After the first sum no copy is of memory that is not pinned, and nothing is pinned any more;
 * after MPI_Finalize nothing is left pinned. */
#include "tests/helper/base/program.h"

#include "tests/helper/devices/fake_driver.h"
#include "tests/helper/devices/gpu.h"

enum { COUNT = 300000, CALLS = 6, NOT_SUPPORTED = 801 };

static int g_lossy;

static void expect(int holds, const char* what, unsigned long number) {
  if (holds) return;
  printf("rank %d: %s: %lu\n", g_rank, what, number);
  ++g_failures;
}

static void sum(float* memory, enum gpu_memory kind) {
  static float values[COUNT];
  fill_whole(values, COUNT, 0, g_rank);
  gpu_copy(memory, kind, values, GPU_HOST, sizeof values);
  MPI_Allreduce(MPI_IN_PLACE, memory, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  if (g_lossy) return;
  gpu_copy(values, GPU_HOST, memory, kind, sizeof values);
  check(error_of_whole(values, COUNT, 0, g_size) == 0, "a sum is wrong");
}

int main(int argc, char** argv) {
  int mixed = 0, refuse = 0, shared = 0;
  begin_mpi();
  for (int i = 1; i < argc; ++i) {
    mixed |= strcmp(argv[i], "mixed") == 0;
    refuse |= strcmp(argv[i], "refuse") == 0;
    shared |= strcmp(argv[i], "shared") == 0;
    g_lossy |= strcmp(argv[i], "lossy") == 0;
  }
  if (gpu_open() != 0 || FIND_FAKE(calls) == NULL) MPI_Abort(MPI_COMM_WORLD, 77);
  if (refuse) FIND_FAKE(fail)("cuMemHostRegister_v2", NOT_SUPPORTED, 0, 1);
  const enum gpu_memory kind = mixed && g_rank % 2 != 0 ? GPU_HOST : GPU_DEVICE;
  float* const memory = gpu_take(kind, COUNT * sizeof(float));
  for (int call = 0; call < 2; ++call) sum(memory, kind);
  const unsigned long copies = CALL_FAKE(pageable);
  const unsigned long pins = CALL_FAKE(calls, "cuMemHostRegister_v2");
  for (int call = 0; call < CALLS; ++call) sum(memory, kind);
  const unsigned long more = CALL_FAKE(pageable) - copies;
  if (!refuse) expect(more == 0, "copies of memory that is not pinned", more);
  if (shared && refuse && kind == GPU_DEVICE)
    expect(more != 0, "copies that the driver counts", more);
  const unsigned long late = CALL_FAKE(calls, "cuMemHostRegister_v2") - pins;
  expect(late == 0, "memory is pinned after the first calls", late);
  if (shared && !refuse && kind == GPU_DEVICE)
    expect(CALL_FAKE(registered) != 0, "bytes that are pinned", 0);
  gpu_give_back(kind, memory);
  const int failed = end_mpi();
  expect(CALL_FAKE(registered) == 0, "bytes are pinned after MPI_Finalize", CALL_FAKE(registered));
  return failed || CALL_FAKE(registered) != 0;
}
