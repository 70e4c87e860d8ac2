/* SPDX-License-Identifier: BSD-3-Clause */
/* Uses a GPU beside the sums as PyTorch, CuPy and their users do; exits 77 without a GPU. Usage:
 * habits plain|virtual|streams|capture|reset|fork
 * plain    only the sums
 * virtual  buffers are in virtual memory (expandable segments); the buffers of the second call have
 *          the addresses of the first call's, mapped anew
 * streams  values are written by a stream of the program's own, which it waits for
 * capture  another thread captures a graph during all sums
 * reset    the GPU is reset between sums, and before MPI_Finalize, as by cudaDeviceReset()
 * fork     a child of the process ends by exit() between sums: the driver is the parent's
 * The sums are of whole numbers, exact with SLIMPI_ALGORITHM=allreduce. */
#include "tests/helper/base/program.h"

#include <sys/wait.h>

#include "tests/helper/devices/fake_driver.h"
#include "tests/helper/devices/gpu.h"

enum { COUNT = 50000, CALLS = 3 };

static const char* g_habit;

static int is(const char* habit) {
  return strcmp(g_habit, habit) == 0;
}

/* A function of the real driver or of the fake one, with arguments of these types. */
#define DRIVER(types, name) ((int(*) types)gpu_function(name))

static void sum(float* memory, enum gpu_memory kind, void* stream) {
  static float values[COUNT];
  fill_whole(values, COUNT, 0, g_rank);
  if (stream != NULL) {
    DRIVER((unsigned long long, unsigned long long, size_t, void*), "cuMemcpyAsync")
    ((size_t)memory, (size_t)values, sizeof values, stream);
    DRIVER((void*), "cuStreamSynchronize")(stream);
  } else {
    gpu_copy(memory, kind, values, GPU_HOST, sizeof values);
  }
  MPI_Allreduce(MPI_IN_PLACE, memory, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  gpu_copy(values, GPU_HOST, memory, kind, sizeof values);
  check(error_of_whole(values, COUNT, 0, g_size) == 0, "a sum is wrong");
}

static void reset(void) {
  if (DRIVER((int), "cuDevicePrimaryCtxReset_v2")(0) != 0) check(0, "the GPU cannot be reset");
}

static void end_a_child(void) {
  int status = 0;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) exit(0);
  check(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child ends badly");
}

int main(int argc, char** argv) {
  begin_mpi();
  g_habit = argc > 1 ? argv[1] : "plain";
  if (gpu_open() != 0) MPI_Abort(MPI_COMM_WORLD, 77);
  const enum gpu_memory kind = is("virtual") ? GPU_VIRTUAL : GPU_DEVICE;
  void* stream = NULL;
  if (is("streams")) DRIVER((void**, unsigned), "cuStreamCreate")(&stream, 1);
  for (int call = 0; call < CALLS; ++call) {
    float* const memory = gpu_take(kind, COUNT * sizeof(float));
    if (is("capture")) DRIVER((int), "slimpi_fake_capture")(1);
    sum(memory, kind, stream);
    if (is("capture")) {
      check(!DRIVER((void), "slimpi_fake_capture_ended")(), "the capture has ended");
      DRIVER((int), "slimpi_fake_capture")(0);
    }
    if (is("fork")) end_a_child();
    if (is("reset"))
      reset();
    else
      gpu_give_back(kind, memory);
  }
  return end_mpi();
}
