/* SPDX-License-Identifier: BSD-3-Clause */
/* Float sums of GPU buffers inside a node whose GPUs are linked: the bytes are those of host
 * buffers. Usage: nccl any|linked|unlinked|block|join|state|send|later COUNT...
 * any                only the bytes count: a node may be of one rank, a sum be left to MPI
 * linked, unlinked   the way that the sums go, where the fake driver tells
 * block              COUNT floats for each rank go in one block
 * join, state        the second rank cannot join, at once or as it hears later: the sums go another
 *                    way on its node
 * send, later        on the second rank NCCL fails at the second call, at once or while the GPU
 *                    works: that is an MPI error on every rank, with NCCL's text on the one
 * Run under the preload; exits 77 without a GPU. */
#include "tests/helper/base/program.h"

#include "tests/helper/devices/fake_driver.h"
#include "tests/helper/devices/gpu.h"

static __typeof__(&slimpi_fake_fail) g_tell;

static void fill(float* values, size_t count, int call) {
  unsigned state = 12345u + 77u * (unsigned)g_rank + 991u * (unsigned)call;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    values[i] = (float)(int)(state >> 8) * 0x1p-24f - 0.5f;
  }
}

/* Sums the values of fill() in memory of this kind, and returns MPI's error code. */
static int sum(MPI_Comm comm, enum gpu_memory kind, float* values, size_t count, int in_place) {
  const size_t bytes = count * sizeof(float);
  float* const in = gpu_take(kind, bytes);
  float* const out = in_place ? in : gpu_take(kind, bytes);
  gpu_copy(in, kind, values, GPU_HOST, bytes);
  const int code =
      MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, (int)count, MPI_FLOAT, MPI_SUM, comm);
  gpu_finish();
  gpu_copy(values, GPU_HOST, out, kind, bytes);
  gpu_give_back(kind, in);
  if (!in_place) gpu_give_back(kind, out);
  return code;
}

static void check_count(size_t count, int linked, int blocks) {
  const size_t bytes = count * sizeof(float);
  float *const expected = malloc(bytes), *const result = malloc(bytes);
  MPI_Comm on_host, on_gpu;
  MPI_Comm_dup(MPI_COMM_WORLD, &on_host);
  MPI_Comm_dup(MPI_COMM_WORLD, &on_gpu);
  const int calls = count > 1000000 ? 2 : 4;
  for (int call = 0; call < calls; ++call) {
    fill(expected, count, call);
    memcpy(result, expected, bytes);
    check(sum(on_host, GPU_HOST, expected, count, call % 2) == MPI_SUCCESS, "host buffers fail");
    const unsigned long before = CALL_FAKE(pieces);
    const int elsewhere = call == 2;
    const enum gpu_memory kind = elsewhere && g_rank == 1 ? GPU_HOST : GPU_DEVICE;
    check(sum(on_gpu, kind, result, count, call % 2) == MPI_SUCCESS, "GPU buffers fail");
    check(memcmp(result, expected, bytes) == 0, "GPU buffers give other bytes");
    /* A rank exchanges a block each way with each other rank, and the finished shards. */
    if (blocks && FIND_FAKE(pieces) != NULL)
      check(CALL_FAKE(pieces) - before <= 4 * (unsigned long)(g_size - 1), "blocks are short");
    if (linked >= 0 && FIND_FAKE(pieces) != NULL && !elsewhere)
      check((CALL_FAKE(pieces) != before) == linked, "the sum did not go the way it should");
  }
  MPI_Comm_free(&on_host);
  MPI_Comm_free(&on_gpu);
  check(CALL_FAKE(communicators) == 0, "communicators of NCCL are left behind");
  free(expected);
  free(result);
}

static void fail_midway(size_t count, const char* function, int result, int calls) {
  float* const values = malloc(count * sizeof(float));
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  fill(values, count, 0);
  check(sum(comm, GPU_DEVICE, values, count, 0) == MPI_SUCCESS, "the first call fails");
  /* Inside one node, MPI makes some calls in turn with NCCL. */
  int code = MPI_SUCCESS;
  for (int call = 0; call < 20 && code == MPI_SUCCESS; ++call) {
    /* A rank that is still in the previous call may get the error there. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (g_rank == 1 && CALL_FAKE(pieces) != 0) g_tell(function, result, calls, 0);
    code = sum(comm, GPU_DEVICE, values, count, 0);
  }
  check(code != MPI_SUCCESS, "the call in which NCCL fails succeeds");
  const char* const text = error_text(code);
  check(strstr(text, "what the test wants to read of NCCL; the last words") != NULL,
        "the error has no text of NCCL's");
  check(g_rank == 1 || strstr(text, "rank 1 failed") != NULL, "the rank that failed is not named");
  printf("%s\n", text);
  MPI_Comm_free(&comm);
  check(CALL_FAKE(communicators) == 0, "communicators of NCCL are left behind");
  free(values);
}

int main(int argc, char** argv) {
  begin_mpi();
  const char* const mode = argc > 1 ? argv[1] : "linked";
  exit_unless_0(gpu_open());
  g_tell = FIND_FAKE(fail);
  for (int i = 2; i < argc; ++i) {
    const size_t count = strtoul(argv[i], NULL, 10);
    if (strcmp(mode, "send") == 0) {
      fail_midway(count, "ncclSend", 1, 0);
    } else if (strcmp(mode, "later") == 0) {
      fail_midway(count, "nccl", 1, 5);
    } else if (strcmp(mode, "block") == 0) {
      check_count(count * (size_t)g_size, -1, 1);
    } else if (strcmp(mode, "join") == 0) {
      if (g_rank == 1) g_tell("ncclCommInitRankConfig", 2, 0, 0);
      check_count(count, -1, 0);
    } else if (strcmp(mode, "state") == 0) {
      if (g_rank == 1) g_tell("nccl", 5, 0, 0);
      check_count(count, -1, 0);
    } else {
      check_count(count, strcmp(mode, "any") == 0 ? -1 : strcmp(mode, "linked") == 0, 0);
    }
  }
  return end_mpi();
}
