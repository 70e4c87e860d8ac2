/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts functions of CUDA's driver that a call calls, on the fake driver; exits 77 without.
 * Usage: queries [between]     how often it asks about a pointer, and for how many attributes: once
 *            for each of its buffers, for two attributes, and never for buffers in the heap, in
 *            static data and on the stack; `between` for calls that slimpi does between nodes
 *        queries MIB MOST COPIES   the calls that a sum of so many MiB may need on any rank, and
 *            how many of them may be copies. Each costs the CPU 0.2 to 5 microseconds, and with
 *            many ranks they, not the wire, limit a GPU's sums. Queries of events and streams do
 *            not count: how many there are depends on how fast others are */
#include "tests/helper/base/program.h"

#include <sys/mman.h>

#include "tests/helper/devices/fake_driver.h"
#include "tests/helper/devices/gpu.h"

enum { COUNT = 20000 };
/* Inside a node, MPI makes the first sums, until the ranks have compared slimpi's order of addition
 * with MPI's. So these calls come before the counted calls. */
static int g_warm = 40, g_measured = 50;

static void count(const char* what, const void* in, void* out, int length, MPI_Datatype type,
                  long wanted) {
  for (int i = 0; i < g_warm; ++i) MPI_Allreduce(in, out, length, type, MPI_SUM, MPI_COMM_WORLD);
  const unsigned long queries = CALL_FAKE(calls, "cuPointerGetAttributes");
  const unsigned long attributes = CALL_FAKE(attributes);
  for (int i = 0; i < g_measured; ++i)
    MPI_Allreduce(in, out, length, type, MPI_SUM, MPI_COMM_WORLD);
  const long asked = (long)(CALL_FAKE(calls, "cuPointerGetAttributes") - queries);
  const long for_what = (long)(CALL_FAKE(attributes) - attributes);
  if (asked == wanted * g_measured && for_what <= 2 * asked) return;
  printf("rank %d: %s: %ld queries of %ld attributes in %d calls\n", g_rank, what, asked, for_what,
         g_measured);
  ++g_failures;
}

static float* map(void) {
  void* const mapped =
      mmap(NULL, COUNT * sizeof(float), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 1);
  return mapped;
}

/* Counts calls that need no question to a driver. */
static void count_none(const float* mapped) {
  static float data[COUNT];
  float stack[100] = {0}, *const heap = calloc(COUNT, sizeof(float));
  count("integers in the heap", MPI_IN_PLACE, heap, COUNT, MPI_INT, 0);
  count("floats from static data to the heap", data, heap, COUNT, MPI_FLOAT, 0);
  count("integers on the stack", data, stack, 100, MPI_INT, 0);
  count("floats on the stack, in place", MPI_IN_PLACE, stack, 100, MPI_FLOAT, 0);
  count("integers from mapped memory to the heap", mapped, heap, COUNT, MPI_INT, 1);
  free(heap);
}

/* Counts in calls that MPI makes, or slimpi inside the node. */
static void count_in_node(const float* in, float* out, float* device) {
  count("integers in place", MPI_IN_PLACE, out, COUNT, MPI_INT, 1);
  count("integers", in, out, COUNT, MPI_INT, 2);
  count("integers of the GPU", MPI_IN_PLACE, device, COUNT, MPI_INT, 1);
  count("floats in the node, in place", MPI_IN_PLACE, out, COUNT, MPI_FLOAT, 1);
  count("floats in the node", in, out, COUNT, MPI_FLOAT, 2);
  count("few floats, in place", MPI_IN_PLACE, out, 1000, MPI_FLOAT, 1); /* MPI sums them */
  count("few floats", in, out, 1000, MPI_FLOAT, 2);
  count_none(in);
}

/* Counts in calls that slimpi makes between nodes, as the options say. */
static void count_between(const float* in, float* out, float* device) {
  float* const other = gpu_take(GPU_DEVICE, COUNT * sizeof(float));
  gpu_copy(other, GPU_DEVICE, in, GPU_HOST, COUNT * sizeof(float));
  count("floats of the GPU, in place", MPI_IN_PLACE, device, COUNT, MPI_FLOAT, 1);
  count("floats of the GPU", other, device, COUNT, MPI_FLOAT, 2);
  count("floats, in place", MPI_IN_PLACE, out, COUNT, MPI_FLOAT, 1);
  count("floats", in, out, COUNT, MPI_FLOAT, 2);
  count("floats from the GPU", other, out, COUNT, MPI_FLOAT, 2);
  count("floats to the GPU", in, device, COUNT, MPI_FLOAT, 2);
  gpu_give_back(GPU_DEVICE, other);
}

static const char* const kFunctions[] = {
    "cuLaunchKernel",        "cuMemcpyAsync",      "cuMemsetD32Async",
    "cuEventRecord",         "cuStreamWaitEvent",  "cuStreamIsCapturing",
    "cuCtxPushCurrent_v2",   "cuCtxPopCurrent_v2", "cuThreadExchangeStreamCaptureMode",
    "cuPointerGetAttributes"};
enum { FUNCTIONS = sizeof kFunctions / sizeof *kFunctions };

/* Counts the calls of each function during one sum. */
static void count_calls(float* memory, int count, long* calls) {
  for (int i = 0; i < FUNCTIONS; ++i) calls[i] = -(long)CALL_FAKE(calls, kFunctions[i]);
  long queries = -(long)CALL_FAKE(calls, "cuEventQuery");
  MPI_Allreduce(MPI_IN_PLACE, memory, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < FUNCTIONS; ++i) calls[i] += (long)CALL_FAKE(calls, kFunctions[i]);
  queries += (long)CALL_FAKE(calls, "cuEventQuery");
  /* Queries are left out: a query makes its context current and restores the former context. */
  for (int i = 6; i <= 7; ++i) calls[i] -= queries;
  calls[8] -= 2 * queries;
}

/* Counts what a sum of so many MiB calls on any rank. */
static void keep_budget(int mib, long allowed, long allowed_copies) {
  const int count = mib << 18;
  float* const memory = gpu_take(GPU_DEVICE, (size_t)count * sizeof(float));
  float* const zeros = calloc((size_t)count, sizeof(float));
  gpu_copy(memory, GPU_DEVICE, zeros, GPU_HOST, (size_t)count * sizeof(float));
  /* Sums of host memory come first: messages are short until call 4, at which the ranks look again
   * whether they may be long. */
  MPI_Allreduce(MPI_IN_PLACE, zeros, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  free(zeros);
  long calls[FUNCTIONS];
  for (int i = 0; i < 4; ++i) count_calls(memory, count, calls);
  long total = 0;
  for (int i = 0; i < FUNCTIONS; ++i) {
    total += calls[i];
    if (g_rank == 0) printf("%8ld %s\n", calls[i], kFunctions[i]);
  }
  long most = 0, copies = calls[1], most_copies = 0;
  PMPI_Allreduce(&total, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
  PMPI_Allreduce(&copies, &most_copies, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
  if (g_rank == 0)
    printf("%8ld calls, %ld copies in %d MiB between %d nodes, %ld calls allowed\n", most,
           most_copies, mib, g_size, allowed);
  gpu_give_back(GPU_DEVICE, memory);
  check(most > 0 && most <= allowed, "calls of a sum");
  check(most_copies <= allowed_copies, "copies of a sum");
}

int main(int argc, char** argv) {
  begin_mpi();
  if (gpu_open() != 0 || FIND_FAKE(calls) == NULL) MPI_Abort(MPI_COMM_WORLD, 77);
  if (argc > 3) {
    keep_budget(atoi(argv[1]), atol(argv[2]), atol(argv[3]));
    return end_mpi();
  }
  float *const in = map(), *const out = map();
  float* const device = gpu_take(GPU_DEVICE, COUNT * sizeof(float));
  gpu_copy(device, GPU_DEVICE, out, GPU_HOST, COUNT * sizeof(float));
  if (argc > 1 && strcmp(argv[1], "between") == 0) {
    g_warm = g_measured = 4;
    count_between(in, out, device);
  } else {
    count_in_node(in, out, device);
  }
  gpu_give_back(GPU_DEVICE, device);
  return end_mpi();
}
