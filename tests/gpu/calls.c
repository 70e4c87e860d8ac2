/* SPDX-License-Identifier: BSD-3-Clause */
/* Thousands of float sums of GPU buffers, on communicators that come and go: nothing is taken after
 * the first call of a size, and nothing is left behind. Usage: calls CALLS [COUNT]; with COUNT all
 * sums are of that many floats. Run under the preload; exits 77 without a GPU. */
#include "tests/helper/base/program.h"

#include "tests/helper/devices/fake_driver.h"
#include "tests/helper/devices/gpu.h"

static size_t g_counts[] = {1000, 4096, 70001};
enum { COUNTS = sizeof g_counts / sizeof *g_counts };

static float* g_memory[COUNTS];

static void call_all(MPI_Comm comm, int calls) {
  for (int call = 0; call < calls; ++call) {
    const int which = call % COUNTS;
    MPI_Allreduce(MPI_IN_PLACE, g_memory[which], (int)g_counts[which], MPI_FLOAT, MPI_SUM, comm);
  }
}

/* How often the fake driver loaded modules or kernels, pinned memory, or made a stream. */
static unsigned long set_up(void) {
  static const char* const names[] = {"cuModuleLoadData", "cuFuncLoad", "cuMemHostRegister_v2",
                                      "cuStreamCreate", "cuStreamCreateWithPriority"};
  unsigned long all = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) all += CALL_FAKE(calls, names[i]);
  return all;
}

/* Bytes of this process that are in memory and not shared. What MPI shares between processes does
 * not count: it is of a fixed size, and a page of it is in memory from its first message on. */
static long resident(void) {
  long all = 0, pages = 0, shared = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (file == NULL) return 0;
  if (fscanf(file, "%ld %ld %ld", &all, &pages, &shared) != 3) pages = shared = 0;
  fclose(file);
  return (pages - shared) * sysconf(_SC_PAGESIZE);
}

static void expect(int holds, const char* what, unsigned long number) {
  if (holds) return;
  printf("rank %d: %s: %lu\n", g_rank, what, number);
  ++g_failures;
}

int main(int argc, char** argv) {
  begin_mpi();
  exit_unless_0(gpu_open());
  const int calls = argc > 1 ? atoi(argv[1]) : 10000;
  for (int i = 0; i < COUNTS; ++i) {
    if (argc > 2) g_counts[i] = (size_t)atol(argv[2]);
    float* const values = calloc(g_counts[i], sizeof(float));
    g_memory[i] = gpu_take(GPU_DEVICE, g_counts[i] * sizeof(float));
    gpu_copy(g_memory[i], GPU_DEVICE, values, GPU_HOST, g_counts[i] * sizeof(float));
    free(values);
  }
  call_all(MPI_COMM_WORLD, COUNTS);
  /* With a real GPU these numbers are 0. Other processes use its memory, too, so only a large
   * difference counts there. */
  const unsigned long taken = CALL_FAKE(allocations), ready = set_up();
  const size_t used = CALL_FAKE(memory);
  const int made = CALL_FAKE(streams) + CALL_FAKE(events);
  const int fake_driver = FIND_FAKE(memory) != NULL;
  const size_t free_before = fake_driver ? 0 : gpu_free_memory();
  call_all(MPI_COMM_WORLD, calls / 10); /* what MPI itself keeps is there, too */
  const long before = resident();
  call_all(MPI_COMM_WORLD, calls);
  const long more = resident() - before;
  /* The real driver keeps what it likes. */
  expect(!fake_driver || more <= 512 << 10, "bytes more in memory after many calls",
         (unsigned long)more);
  expect(CALL_FAKE(streams) + CALL_FAKE(events) == made, "streams and events after the first calls",
         (unsigned long)made);
  expect(CALL_FAKE(allocations) == taken, "times that memory was taken after the first calls",
         CALL_FAKE(allocations) - taken);
  expect(set_up() == ready, "modules, kernels, pinned ranges and streams after the first calls",
         set_up() - ready);
  for (int i = 0; i < (fake_driver ? 3 : 20); ++i) { /* what the fake driver says is exact */
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    call_all(comm, COUNTS);
    MPI_Comm_free(&comm);
  }
  expect(CALL_FAKE(memory) == used, "bytes of memory in use at the end", CALL_FAKE(memory));
  const size_t free_after = fake_driver ? 0 : gpu_free_memory(), much = (size_t)64 << 20;
  expect(free_after + much >= free_before, "bytes of GPU memory less than before",
         free_before - free_after);
  for (int i = 0; i < COUNTS; ++i) gpu_give_back(GPU_DEVICE, g_memory[i]);
  return end_mpi();
}
