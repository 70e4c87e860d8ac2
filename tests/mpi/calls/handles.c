/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums floats with arguments in the form in which a compiler may leave them: if MPI's handles are
 * ints, the upper half of each register is garbage. Then frees a communicator that has options from
 * info keys and an attribute. Prints `close` if the sums are as close as 8 bits allow, and
 * `options` if slimpi left the communicator with the info keys to MPI. */
#include "tests/helper/base/program.h"

enum { N = 50000 };

typedef int Sum(const void*, void*, int, uint64_t, uint64_t, uint64_t);

static uint64_t word(const void* handle, size_t bytes) {
  if (bytes == sizeof(uint64_t)) return *(const uint64_t*)handle;
  return *(const uint32_t*)handle | UINT64_C(0xdeadbeef00000000);
}

static int freed;
static int on_free(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  ++freed;
  return MPI_SUCCESS;
}

int main(void) {
  int key;
  begin_mpi();
  float* const in = malloc(N * sizeof *in);
  float* const out = malloc(N * sizeof *out);
  fill_whole(in, N, 0, g_rank);
  MPI_Comm world = MPI_COMM_WORLD;
  MPI_Datatype type = MPI_FLOAT;
  MPI_Op op = MPI_SUM;
  void* volatile function = (void*)MPI_Allreduce; /* whose type the compiler must not see */
  Sum* const sum = (Sum*)function;
  int bad = sum(in, out, N, word(&type, sizeof type), word(&op, sizeof op),
                word(&world, sizeof world)) != MPI_SUCCESS;
  bad |= error_of_whole(out, N, 0, g_size) > 2;
  if (g_rank == 0) puts(bad ? "wrong" : "close");

  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "slimpi_algorithm", "off");
  MPI_Comm own;
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &own);
  MPI_Info_free(&info);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_free, &key, NULL);
  MPI_Comm_set_attr(own, key, NULL);
  MPI_Allreduce(in, out, N, MPI_FLOAT, MPI_SUM, own);
  const int inexact = error_of_whole(out, N, 0, g_size) != 0;
  MPI_Comm_free(&own);
  MPI_Comm_free_keyval(&key);
  if (g_rank == 0) puts(!inexact && freed == 1 ? "options" : "no options");
  MPI_Finalize();
  return bad | inexact;
}
