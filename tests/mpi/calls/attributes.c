/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of the program on communicators on which it sums floats. Prints what every callback
 * saw, which must be the same with and without the library. Usage: attributes WHAT:
 *   copy     callbacks that count
 *   nested   a copy callback that itself makes a float sum
 *   failing  a copy callback that fails on rank 1
 *   delete   delete callbacks that make a float sum during MPI_Comm_free and MPI_Comm_disconnect:
 *            the communicator was summed on before or after the keyval was made, or never
 *   last     a delete callback of MPI_COMM_WORLD, in MPI_Finalize */
#include "tests/helper/base/program.h"

static int copies, deletes, wrong;
static int sum_in_copy, sum_in_delete, fail_on = -1;

static void sum(MPI_Comm comm) {
  wrong += !(error_of_sum(comm, 20000, 0) < 0.5 * g_size);
}

static int copy(MPI_Comm comm, int keyval, void* extra, void* in, void* out, int* flag) {
  (void)keyval, (void)extra;
  ++copies;
  if (g_rank == fail_on) return MPI_ERR_OTHER;
  if (sum_in_copy) sum(comm);
  *(void**)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}

static int forget(MPI_Comm comm, int keyval, void* value, void* extra) {
  (void)keyval, (void)value, (void)extra;
  ++deletes;
  if (sum_in_delete) sum(comm);
  return MPI_SUCCESS;
}

static void report(const char* step) {
  int seen[3] = {copies, deletes, wrong}, total[3];
  PMPI_Reduce(seen, total, 3, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (g_rank == 0)
    printf("%s: %d copies, %d deletes, %d wrong\n", step, total[0], total[1], total[2]);
  fflush(stdout);
}

/* Makes two sums on a duplicate of the world that has an attribute, then a sum on a duplicate that
 * the program makes of it with MPI_Comm_dup. Prints the callbacks of each step. */
static void copy_callbacks(void) {
  MPI_Comm comm, again;
  int keyval;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_create_keyval(copy, forget, &keyval, NULL);
  MPI_Comm_set_attr(comm, keyval, &keyval);
  sum(comm);
  sum(comm);
  report("two sums");
  if (fail_on < 0) {
    MPI_Comm_dup(comm, &again);
    report("a duplicate");
    sum(again);
    report("a sum there");
    MPI_Comm_free(&again);
    report("the duplicate freed");
  }
  MPI_Comm_free(&comm);
  MPI_Comm_free_keyval(&keyval);
  report("freed");
}

static void delete_callbacks(void) {
  sum_in_delete = 1;
  for (int round = 0; round < 12; ++round) {
    const int sum_first = round % 3 == 0, sum_later = round % 3 == 1;
    MPI_Comm comm;
    int keyval;
    char text[40];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (sum_first) sum(comm);
    MPI_Comm_create_keyval(copy, forget, &keyval, NULL);
    MPI_Comm_set_attr(comm, keyval, &keyval);
    if (sum_later) sum(comm);
    if (round % 2 == 0)
      MPI_Comm_free(&comm);
    else
      MPI_Comm_disconnect(&comm);
    MPI_Comm_free_keyval(&keyval);
    sum(MPI_COMM_WORLD);
    snprintf(text, sizeof text, "round %d", round);
    report(text);
  }
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  begin_mpi();
  if (!strcmp(what, "nested")) sum_in_copy = 1;
  if (!strcmp(what, "failing")) fail_on = 1;
  if (!strcmp(what, "delete")) {
    delete_callbacks();
  } else if (!strcmp(what, "last")) {
    int keyval;
    sum_in_delete = 1;
    MPI_Comm_create_keyval(copy, forget, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &keyval);
    if (argc > 2) sum(MPI_COMM_WORLD);
  } else {
    copy_callbacks();
  }
  MPI_Finalize();
  if (g_rank == 0) printf("%d deletes at the end, %d wrong\n", deletes, wrong);
  return wrong != 0;
}
