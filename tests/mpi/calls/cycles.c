/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI begins and ends several times, by sessions. Built by cycles.sh for every MPICH it finds.
 * Usage: cycles WHAT, where WHAT is
 *   plain      five sessions, one after the other, with three float sums in each
 *   threads    the same with MPI_THREAD_MULTIPLE and nonblocking sums
 *   keyval     the program makes a keyval and sets an attribute first, from the second one on
 *   leak       communicators are not freed
 *   error      an error of slimpi in every session (SLIMPI_BITS differs between ranks)
 *   freed      the same, nonblocking; the communicator is freed before MPI_Wait returns the error
 *   two        each session inside another that lives longer
 *   world      the sessions between MPI_Init and MPI_Finalize
 *   before     the sessions, then MPI_Init
 *   after      MPI_Init and MPI_Finalize, then the sessions */
#include "tests/helper/base/program.h"

#include "tests/helper/mpi/collectives.h"

#define COUNT 50000
static int deletes;
static const char* what;

static void report(const char* text) {
  printf("%s a communicator\n", text);
  fflush(stdout);
}

/* Frees the communicator first, so that the sum's error is raised without it and without
 * MPI_COMM_WORLD. */
static void free_before_wait(MPI_Comm* comm) {
  static float x[COUNT];
  MPI_Request request;
  MPI_Iallreduce(MPI_IN_PLACE, x, COUNT, MPI_FLOAT, MPI_SUM, *comm, &request);
  MPI_Comm_free(comm);
  check(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS, "an error after MPI_Comm_free");
}

static void sum(MPI_Comm comm) {
  static float x[COUNT];
  const char* const collective = strcmp(what, "threads") ? "Allreduce" : "Iallreduce";
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  fill_whole(x, COUNT, 0, rank);
  const int code = sum_floats(collective, MPI_IN_PLACE, x, COUNT, NULL, 0, comm);
  const int good = code == MPI_SUCCESS && error_of_whole(x, COUNT, 0, size) < 0.5 * size;
  check(good == (strcmp(what, "error") != 0), "a sum");
}

static int forget(MPI_Comm comm, int keyval, void* value, void* extra) {
  (void)comm, (void)keyval, (void)extra;
  ++*(int*)value;
  return MPI_SUCCESS;
}

static void cycle(int number) {
  MPI_Session session;
  MPI_Group group;
  MPI_Info info;
  MPI_Comm comm;
  char tag[20];
  int keyval = MPI_KEYVAL_INVALID;
  const int freed = !strcmp(what, "freed"), errors = freed || !strcmp(what, "error");
  const int attribute = !strcmp(what, "keyval") && number > 0;
  snprintf(tag, sizeof tag, "cycle %d", number);
  MPI_Info_create(&info);
  if (freed || !strcmp(what, "threads")) MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
  MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Info_free(&info);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  report("creating"); /* cycles.sh counts both: MPICH 5.0.2 does not always come back from it */
  MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL,
                             errors ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL, &comm);
  report("created");
  MPI_Group_free(&group);
  if (attribute) {
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL);
    MPI_Comm_set_attr(comm, keyval, &deletes);
  }
  if (freed) free_before_wait(&comm);
  for (int call = 0; call < (errors ? 1 : 3) && !freed; ++call) sum(comm);
  if (strcmp(what, "leak") != 0 && !freed) MPI_Comm_free(&comm);
  if (attribute) {
    MPI_Comm_free_keyval(&keyval);
    check(deletes == number, "the program's delete callback ran another number of times");
  }
  if (!strcmp(what, "two")) {
    MPI_Session inner;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &inner);
    MPI_Session_finalize(&inner);
  }
  MPI_Session_finalize(&session);
}

int main(int argc, char** argv) {
  MPI_Session outer = MPI_SESSION_NULL;
  what = argc > 1 ? argv[1] : "plain";
  const int world = !strcmp(what, "world"), before = !strcmp(what, "before");
  if (world || !strcmp(what, "after")) {
    MPI_Init(&argc, &argv);
    sum(MPI_COMM_WORLD);
  }
  if (!strcmp(what, "after")) MPI_Finalize();
  if (!strcmp(what, "two")) MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &outer);
  for (int number = 0; number < 5; ++number) cycle(number);
  if (outer != MPI_SESSION_NULL) MPI_Session_finalize(&outer);
  if (before) MPI_Init(&argc, &argv);
  if (world || before) {
    sum(MPI_COMM_WORLD);
    MPI_Finalize();
  }
  return g_failures != 0;
}
