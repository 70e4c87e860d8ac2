/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts how often a call asks the driver about a pointer, and for how many attributes, on the fake
 * driver: once for each of its buffers, for two attributes, and never for buffers in the heap, in
 * static data and on the stack. Usage: queries [between], with `between` for calls that slimpi does
 * between nodes; exits 77 without the fake driver. */
#include "tests/helper/program.h"

#include <sys/mman.h>

#include "tests/helper/fake_driver.h"
#include "tests/helper/gpu.h"

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

/* Counts calls for which no driver has to be asked. */
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

int main(int argc, char** argv) {
  begin_mpi();
  if (gpu_open() != 0 || FIND_FAKE(calls) == NULL) MPI_Abort(MPI_COMM_WORLD, 77);
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
