/* SPDX-License-Identifier: BSD-3-Clause */
/* Thousands of float sums of GPU buffers, on communicators that come and go: nothing is taken after
 * the first call of a size, and nothing is left behind. Usage: calls CALLS [COUNT]; with COUNT all
 * sums are of that many floats. Run under the preload; exits 77 without a GPU. */
#include "tests/helper/program.h"

#include "tests/helper/gpu.h"

static size_t g_counts[] = {1000, 4096, 70001};
enum { COUNTS = sizeof g_counts / sizeof *g_counts };

static float* g_memory[COUNTS];

static void call_all(MPI_Comm comm, int calls) {
  for (int call = 0; call < calls; ++call) {
    const int which = call % COUNTS;
    MPI_Allreduce(MPI_IN_PLACE, g_memory[which], (int)g_counts[which], MPI_FLOAT, MPI_SUM, comm);
  }
}

/* Bytes in use, and allocations so far, as the fake driver counts them; 0 on a real GPU. Other
 * processes use the memory of a real GPU, too, so there only a large difference counts (main). */
static size_t used(void) {
  size_t (*const fake_driver)(void) = (size_t(*)(void))gpu_function("slimpi_fake_memory");
  return fake_driver != NULL ? fake_driver() : 0;
}
static unsigned long taken(void) {
  unsigned long (*const fake_driver)(void) =
      (unsigned long (*)(void))gpu_function("slimpi_fake_allocations");
  return fake_driver != NULL ? fake_driver() : 0;
}

static int number_of(const char* what) {
  int (*const fake_driver)(void) = (int (*)(void))gpu_function(what);
  return fake_driver != NULL ? fake_driver() : 0;
}

/* How often the fake driver loaded modules or kernels, pinned memory, or made a stream. */
static unsigned long set_up(void) {
  static const char* const names[] = {"cuModuleLoadData", "cuFuncLoad", "cuMemHostRegister_v2",
                                      "cuStreamCreate", "cuStreamCreateWithPriority"};
  unsigned long (*const calls)(const char*) =
      (unsigned long (*)(const char*))gpu_function("slimpi_fake_calls");
  unsigned long all = 0;
  for (size_t i = 0; calls != NULL && i < sizeof names / sizeof *names; ++i) all += calls(names[i]);
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

int main(int argc, char** argv) {
  begin_mpi();
  int skipped = gpu_open();
  PMPI_Allreduce(MPI_IN_PLACE, &skipped, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  const int calls = argc > 1 ? atoi(argv[1]) : 10000;
  for (int i = 0; argc > 2 && i < COUNTS; ++i) g_counts[i] = (size_t)atol(argv[2]);
  if (skipped == 0) {
    for (int i = 0; i < COUNTS; ++i) {
      float* const values = calloc(g_counts[i], sizeof(float));
      g_memory[i] = gpu_take(GPU_DEVICE, g_counts[i] * sizeof(float));
      gpu_copy(g_memory[i], GPU_DEVICE, values, GPU_HOST, g_counts[i] * sizeof(float));
      free(values);
    }
    call_all(MPI_COMM_WORLD, COUNTS);
    const unsigned long taken_before = taken();
    const size_t before = used();
    const int fake_driver = gpu_function("slimpi_fake_memory") != NULL;
    const size_t free_before = fake_driver ? 0 : gpu_free_memory();
    const int streams = number_of("slimpi_fake_streams");
    const int events = number_of("slimpi_fake_events");
    const unsigned long set_up_before = set_up();
    call_all(MPI_COMM_WORLD, calls / 10); /* what MPI itself keeps is there, too */
    const long resident_before = resident();
    call_all(MPI_COMM_WORLD, calls);
    if (resident() > resident_before + (512 << 10)) {
      printf("rank %d: %ld KiB more in memory after %d calls\n", g_rank,
             (resident() - resident_before) >> 10, calls);
      g_failures += fake_driver; /* the real driver keeps what it likes */
    }
    if (number_of("slimpi_fake_streams") != streams || number_of("slimpi_fake_events") != events) {
      printf("rank %d: streams or events were made after the first calls\n", g_rank);
      ++g_failures;
    }
    if (taken() != taken_before) {
      printf("rank %d: memory was taken %lu times after the first calls\n", g_rank,
             taken() - taken_before);
      ++g_failures;
    }
    if (set_up() != set_up_before) {
      printf("rank %d: %lu modules, kernels, pinned ranges or streams after the first calls\n",
             g_rank, set_up() - set_up_before);
      ++g_failures;
    }
    for (int i = 0; i < (fake_driver ? 3 : 20); ++i) { /* what the fake driver says is exact */
      MPI_Comm comm;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      call_all(comm, COUNTS);
      MPI_Comm_free(&comm);
    }
    if (used() != before) {
      printf("rank %d: %zu bytes of memory in use, %zu before\n", g_rank, used(), before);
      ++g_failures;
    }
    const size_t free_after = fake_driver ? 0 : gpu_free_memory(), much = (size_t)64 << 20;
    if (free_after + much < free_before) {
      printf("rank %d: %zu bytes of GPU memory less than before\n", g_rank,
             free_before - free_after);
      ++g_failures;
    }
    for (int i = 0; i < COUNTS; ++i) gpu_give_back(GPU_DEVICE, g_memory[i]);
  }
  const int failed = end_mpi();
  return skipped != 0 ? skipped : failed;
}
