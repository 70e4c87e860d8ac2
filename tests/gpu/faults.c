/* SPDX-License-Identifier: BSD-3-Clause */
/* A GPU that fails on one rank of three, told to by the fake driver. Usage: faults
 * memory|kernels|lost|stream|copy.
 * memory   the second rank has no GPU memory at the first call: MPI answers it on all ranks, and
 *          later calls are compressed again
 * kernels  the second rank's driver cannot load the kernels: MPI answers all calls
 * lost     the second rank's GPU stops at the second call: that is an MPI error on every rank, with
 *          CUDA's text on the one
 * stream   the same, of work that was queued before: the driver says so when it is asked
 * copy     a copy of the second rank fails once, of a call that MPI does: an error there, and the
 *          next call works */
#include "tests/helper/base/program.h"

#include "tests/helper/devices/fake_driver.h"
#include "tests/helper/devices/gpu.h"

enum { COUNT = 20000, UNKNOWN = 999, NO_MEMORY = 2, NO_BINARY = 209 };

/* Makes a sum. Returns the code of the call, and in `worst` how far the result is from the sum. */
static int sum(float* memory, double* worst) {
  static float values[COUNT];
  fill_whole(values, COUNT, 0, g_rank);
  gpu_copy(memory, GPU_DEVICE, values, GPU_HOST, sizeof values);
  const int code = MPI_Allreduce(MPI_IN_PLACE, memory, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  gpu_copy(values, GPU_HOST, memory, GPU_DEVICE, sizeof values);
  *worst = error_of_whole(values, COUNT, 0, g_size);
  return code;
}

/* Makes a sum of integers, which is MPI's own. */
static int sum_integers(int* memory, int* right) {
  int value = g_rank + 1;
  gpu_copy(memory, GPU_DEVICE, &value, GPU_HOST, sizeof value);
  const int code = MPI_Allreduce(MPI_IN_PLACE, memory, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  gpu_copy(&value, GPU_HOST, memory, GPU_DEVICE, sizeof value);
  *right = value == g_size * (g_size + 1) / 2;
  return code;
}

int main(int argc, char** argv) {
  begin_mpi();
  const char* const what = argc > 1 ? argv[1] : "";
  if (gpu_open() != 0 || FIND_FAKE(fail) == NULL) MPI_Abort(MPI_COMM_WORLD, 77);
  __typeof__(&slimpi_fake_fail) const tell = FIND_FAKE(fail);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  float* const memory = gpu_take(GPU_DEVICE, COUNT * sizeof(float));
  double worst = 0;
  if (strcmp(what, "memory") == 0) {
    if (g_rank == 1) tell("cuMemAlloc_v2", NO_MEMORY, 0, 0);
    check(sum(memory, &worst) == MPI_SUCCESS, "the call without memory fails");
    check(worst == 0, "the call without memory is not exact");
    check(sum(memory, &worst) == MPI_SUCCESS, "the call after it fails");
    check(worst > 0 && worst < 10, "the call after it is not a compressed one");
  } else if (strcmp(what, "kernels") == 0) {
    if (g_rank == 1) tell("cuModuleLoadData", NO_BINARY, 0, 1);
    for (int call = 0; call < 2; ++call) {
      check(sum(memory, &worst) == MPI_SUCCESS, "a call without kernels fails");
      check(worst == 0, "a call without kernels is not exact");
    }
  } else if (strcmp(what, "copy") == 0) {
    int right = 0;
    check(sum_integers((int*)memory, &right) == MPI_SUCCESS && right, "the first call fails");
    if (g_rank == 1) tell("cuMemcpyAsync", UNKNOWN, 1, 0); /* the copy of the result */
    const int code = sum_integers((int*)memory, &right);
    check((code == MPI_SUCCESS) == (g_rank != 1), "the copy's failure is not an error there");
    for (int call = 0; call < 2; ++call)
      check(sum_integers((int*)memory, &right) == MPI_SUCCESS && right,
            "a call after the failed one fails");
  } else {
    check(sum(memory, &worst) == MPI_SUCCESS, "the first call fails");
    check(worst > 0 && worst < 10, "the first call is not a compressed one");
    const int stream = strcmp(what, "stream") == 0;
    if (g_rank == 1) tell(stream ? "cuEventQuery" : "cuLaunchKernel", UNKNOWN, 0, 1);
    const int code = sum(memory, &worst);
    const char* const text = error_text(code);
    check(code != MPI_SUCCESS, "the call on a lost GPU succeeds");
    if (g_rank == 1)
      check(strstr(text, "CUDA_ERROR_OF_A_TEST (999)") != NULL, "the error has no text of CUDA's");
    if (g_rank == 1) printf("%s\n", text);
    tell(NULL, 0, 0, 0);
  }
  gpu_give_back(GPU_DEVICE, memory);
  return end_mpi();
}
