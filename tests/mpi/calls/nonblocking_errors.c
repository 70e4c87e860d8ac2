// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking and persistent sums that fail: the error comes from the function that completes the
// request. And MPI_Cancel and MPI_Request_free of sums in flight. Run by nonblocking.sh.
// Usage: nonblocking_errors [failing | reused | starting | limited]
//   failing   under a hook that fails in the second call of each communicator
//   reused    with tests/helper/mpi/after_wait.c behind slimpi
//   starting  under a hook that starts a persistent sum
//   limited   sums of a process that gets little more memory
#include "tests/mpi/calls/nonblocking.h"

#include <sys/resource.h>

// MPI_Request_get_status_any and _some of MPICH 5.0.2 make a persistent request inactive.
static int g_persistent;

// Asks whether r[0] and r[1] are complete, by a function of MPI 4.1 that frees no request.
static void ask(int function, const MPI_Request* r) {
#if HAS_STATUS_OF_SEVERAL
  int done = 0, index = 0, indices[2], code = MPI_SUCCESS;
  while (function == 1 && !done && code == MPI_SUCCESS)
    code = MPI_Request_get_status_all(2, r, &done, MPI_STATUSES_IGNORE);
  while (function == 2 && !g_persistent && !done && code == MPI_SUCCESS)
    code = MPI_Request_get_status_any(2, r, &index, &done, MPI_STATUS_IGNORE);
  while (function == 3 && !g_persistent && !done && code == MPI_SUCCESS)
    code = MPI_Request_get_status_some(2, r, &done, indices, MPI_STATUSES_IGNORE);
  must(code == MPI_SUCCESS, "the status of several requests");
#else
  (void)function, (void)r, (void)g_persistent;
#endif
}

// Completes r[1], which must fail, and with it r[0], which may be null.
static void fail_by(enum way way, MPI_Request* r, MPI_Status* s) {
  int class = MPI_SUCCESS;
  ask(way % 4, r);
  int code = complete(way, 2, r, way < WAITALL ? NULL : s);
  if (way >= WAITALL) {
    must(code == MPI_ERR_IN_STATUS, kWayNames[way]);
    code = s[1].MPI_ERROR;
  }
  must(code != MPI_SUCCESS && code != -1, kWayNames[way]);
  MPI_Error_class(code, &class);
  must(class != MPI_SUCCESS, "the class of the error");
}

// Tests for completion of a sum that has failed, together with a receive that fails. If another
// request is still incomplete, MPI_Testall of MPICH 5 keeps all requests and sets no flag.
static void beside_a_failed_receive(MPI_Comm comm) {
  MPI_Request r[3];
  MPI_Status s[3];
  const char sent[2] = {1, 2};
  char received[2];
  MPI_Comm self;
  MPI_Comm_dup(MPI_COMM_SELF, &self);
  for (int i = 0; i < 3; ++i)
    MPI_Comm_set_errhandler(i == 0   ? MPI_COMM_WORLD
                            : i == 1 ? self
                                     : MPI_COMM_SELF,
                            MPI_ERRORS_RETURN);
  for (int i = 0; i < kMany; ++i) {
    int flag = 0, done = 0, code = MPI_SUCCESS, failed = 0;
    MPI_Request* const sum = &r[i % 2];
    r[2] = MPI_REQUEST_NULL;
    MPI_Iallreduce(g_in[1], g_out[1], kCount, MPI_FLOAT, MPI_SUM, comm, sum);
    while (!done) MPI_Request_get_status(*sum, &done, MPI_STATUS_IGNORE);
    MPI_Irecv(&received[0], 1, MPI_CHAR, 0, 0, self, &r[1 - i % 2]);
    if (i > 1) MPI_Irecv(&received[1], 1, MPI_CHAR, 0, 1, self, &r[2]);
    MPI_Send(sent, 2, MPI_CHAR, 0, 0, self);
    // Open MPI 5 returns no error for a receive that is too short.
    for (int polls = 0; polls < 1000 && !flag && code == MPI_SUCCESS; ++polls)
      code = MPI_Testall(3, r, &flag, s);
    if (code != MPI_SUCCESS) {
      must(s[i % 2].MPI_ERROR != MPI_SUCCESS, "a failed sum beside a failed receive");
      failed = s[i % 2].MPI_ERROR != MPI_ERR_PENDING;
    }
    if (i > 1) MPI_Send(sent, 1, MPI_CHAR, 0, 1, self);
    if (*sum != MPI_REQUEST_NULL) failed += MPI_Wait(sum, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    must(failed == 1, "a failed sum tells its error once");
    for (int j = 0; j < 3; ++j) MPI_Wait(&r[j], MPI_STATUS_IGNORE);
  }
  MPI_Comm_free(&self);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

// Returns a communicator whose ranks have different options, so that all its sums fail.
static MPI_Comm failing_comm(void) {
  MPI_Comm comm;
  MPI_Info info;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Info_create(&info);
  MPI_Info_set(info, "slimpi_min_size", g_rank == 0 ? "1k" : "2k");
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
  return comm;
}

static MPI_Comm g_raised;              // the communicator of the last error
static MPI_Request g_first, g_second;  // the handles of two requests, of which the first has ended
static MPI_Comm g_other;               // the communicator of the second request

static void note_comm(MPI_Comm* comm, int* code, ...) {
  (void)code;
  g_raised = *comm;
}

static void begin_failing_sum(void) {
  int done = 0;
  MPI_Iallreduce(g_in[1], g_out[1], kCount, MPI_FLOAT, MPI_SUM, g_other, &g_second);
  while (!done) MPI_Request_get_status(g_second, &done, MPI_STATUS_IGNORE);
}

static void make_barrier(void) {
  MPI_Request request;
  MPI_Ibarrier(g_other, &request);
  g_second = request;
  must(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "MPI's own request succeeds");
  must(g_raised == MPI_COMM_NULL, "MPI's own request raises no error");
}

// Lets MPI give the handle of a failed sum to another request, after the sum is complete and before
// slimpi raises its error. Each error must be raised on the communicator of its own sum.
static void reused(void) {
  void (** const after_wait)(void) = (void (**)(void))dlsym(RTLD_DEFAULT, "slimpi_after_wait");
  const MPI_Comm first = failing_comm();
  MPI_Errhandler note;
  int equal = 0;
  must(after_wait != NULL, "after_wait.c is preloaded");
  g_other = failing_comm();
  MPI_Comm_create_errhandler(note_comm, &note);
  MPI_Comm_set_errhandler(first, note);
  MPI_Comm_set_errhandler(g_other, note);
  for (int i = 0; i < kMany; ++i) {
    MPI_Request r;
    MPI_Iallreduce(g_in[0], g_out[0], kCount, MPI_FLOAT, MPI_SUM, first, &r);
    g_first = r;
    g_raised = MPI_COMM_NULL;
    *after_wait = i % 2 == 0 ? begin_failing_sum : make_barrier;
    must(MPI_Wait(&r, MPI_STATUS_IGNORE) != MPI_SUCCESS && g_raised == first,
         "the error of the first sum");
    equal += g_first == g_second;
    if (i % 2 != 0) continue;
    must(MPI_Wait(&g_second, MPI_STATUS_IGNORE) != MPI_SUCCESS && g_raised == g_other,
         "the error of the second sum");
  }
  if (equal == 0) fprintf(stderr, "MPI gives no handle to another request at once\n");
  MPI_Errhandler_free(&note);
  MPI_Comm_free(&g_other);
}

// Makes sums that fail because the ranks have different options. The function that completes the
// request must return the error and write it to the status, while a sum of another communicator
// succeeds.
static void errors(void) {
  MPI_Comm comm = failing_comm();
  MPI_Request r[2];
  MPI_Status s[2];
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (enum way way = WAIT; way < WAYS; ++way) {
    r[0] = MPI_REQUEST_NULL;
    if (way >= WAITALL) begin(MPI_COMM_WORLD, 0, &r[0]);
    must(MPI_Iallreduce(g_in[1], g_out[1], kCount, MPI_FLOAT, MPI_SUM, comm, &r[1]) == 0,
         "the start of a sum that will fail");
    fail_by(way, r, s);
    must(r[1] == MPI_REQUEST_NULL, "a request that failed is complete");
    if (way >= WAITALL) {
      must(s[0].MPI_ERROR == MPI_SUCCESS, "the status of the sum that succeeds");
      must(memcmp(g_out[0], g_blocking[0], kCount * sizeof(float)) == 0,
           "a sum beside one that fails");
    }
  }
  beside_a_failed_receive(comm);
  // The errors of the two sums below are reported by no function.
  begin(comm, 1, &r[1]);
  MPI_Request_free(&r[1]);
  begin(comm, 1, &r[1]);
  MPI_Comm_free(&comm);
}

#if HAS_PERSISTENT_SUMS
static MPI_Request* g_restarted;  // the request that restart() starts, if any

static void restart(MPI_Comm* comm, int* code, ...) {
  must(*comm != MPI_COMM_NULL && *code != MPI_SUCCESS, "what the error handler gets");
  if (g_restarted != NULL) MPI_Start(g_restarted);
  g_restarted = NULL;
}

// Two persistent sums fail. While the error of the first is reported, the program's error handler
// starts the second again, whose error is still to come.
static void restarted_by_handler(void) {
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Request r[2];
  MPI_Status s[2];
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(restart, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  for (int i = 0; i < 2; ++i)
    MPI_Allreduce_init(g_in[i], g_out[i], kCount, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &r[i]);
  MPI_Startall(2, r);
  must(MPI_Waitall(2, r, s) == MPI_SUCCESS, "starts before those that fail");
  MPI_Startall(2, r);
  g_restarted = &r[1];
  must(MPI_Waitall(2, r, s) == MPI_ERR_IN_STATUS && g_restarted == NULL, "two sums that fail");
  for (int i = 0; i < 2; ++i) must(s[i].MPI_ERROR != MPI_SUCCESS, "the error of each sum");
  must(MPI_Wait(&r[1], MPI_STATUS_IGNORE) == MPI_SUCCESS, "the start by the error handler");
  for (int i = 0; i < 2; ++i) MPI_Request_free(&r[i]);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
}

// Waits until the sum of a persistent request is made, and starts the request beside one that MPI
// refuses. The error of the sum is still to come.
static void refuse_to_start(MPI_Request request) {
  MPI_Request both[2] = {request, MPI_REQUEST_NULL};
  for (int done = 0; !done;) MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
  must(MPI_Startall(2, both) != MPI_SUCCESS, "Startall with a null request");
}
#endif

// Tests sums with a hook that fails in the second call of each communicator. The second start of
// each persistent sum fails, where it is completed, even after its communicator was freed or the
// program tried to start the request again. All other starts succeed.
static void failing(void) {
#if HAS_PERSISTENT_SUMS
  MPI_Comm comm;
  MPI_Request r[2] = {MPI_REQUEST_NULL};
  MPI_Status s[2];
  g_persistent = 1;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (int way = 0; way <= WAYS; ++way) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Allreduce_init(g_in[0], g_out[0], kCount, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &r[1]);
    if (way == WAYS) MPI_Comm_free(&comm);
    for (int start = 1; start <= 3; ++start) {
      must(MPI_Start(&r[1]) == MPI_SUCCESS, "the start of a persistent sum that may fail");
      if (start == 2 && way % 4 == 0) refuse_to_start(r[1]);
      if (start == 2)
        fail_by((enum way)(way % WAYS), r, s);
      else
        must(MPI_Wait(&r[1], MPI_STATUS_IGNORE) == MPI_SUCCESS, "a start that succeeds");
    }
    MPI_Request_free(&r[1]);
    if (way < WAYS) MPI_Comm_free(&comm);
  }
  restarted_by_handler();
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
#endif
}

// Makes a sum whose hook starts another one: while it encodes, it starts the persistent request at
// the address in HOOK_STARTS. Both sums must be right.
static void started_by_hook(void) {
#if HAS_PERSISTENT_SUMS
  MPI_Request r[2];
  char address[32];
  MPI_Allreduce_init(g_in[0], g_out[0], kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &r[0]);
  for (int i = 0; i < kMany; ++i) {
    clear(0);
    snprintf(address, sizeof address, "%p", (void*)&r[0]);
    setenv("HOOK_STARTS", address, 1);
    begin(MPI_COMM_WORLD, 1, &r[1]);
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    must(memcmp(g_out[1], g_blocking[1], kCount * sizeof(float)) == 0, "a sum whose hook starts");
    must(memcmp(g_out[0], g_blocking[0], kCount * sizeof(float)) == 0, "a sum that a hook starts");
  }
  MPI_Request_free(&r[0]);
#endif
}

// Limits the address space of rank 0 to `bytes` more than it has now.
static void limit_memory(rlim_t bytes) {
  struct rlimit limit;
  unsigned long pages = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  must(file != NULL && fscanf(file, "%lu", &pages) == 1, "the size of the process");
  fclose(file);
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + bytes;
  if (g_rank == 0) setrlimit(RLIMIT_AS, &limit);
}

// Makes sums without enough memory for a thread's stack, and many persistent sums at once.
static void limited(void) {
  MPI_Request r;
  limit_memory((rlim_t)14 << 20);
  begin(MPI_COMM_WORLD, 0, &r);
  must(MPI_Wait(&r, MPI_STATUS_IGNORE) == MPI_SUCCESS, "Wait with little memory");
  same_of(0, "a sum with little memory");
#if HAS_PERSISTENT_SUMS
  enum { kAll = 8 * kMany };
  static float out[kAll][kCount];
  MPI_Request all[kAll];
  for (int i = 0; i < kAll; ++i)
    MPI_Allreduce_init(g_in[0], out[i], kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &all[i]);
  limit_memory((rlim_t)100 << 20);
  MPI_Startall(kAll, all);
  MPI_Waitall(kAll, all, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kAll; ++i) {
    must(memcmp(out[i], g_blocking[0], sizeof out[i]) == 0, "persistent sums with little memory");
    MPI_Request_free(&all[i]);
  }
#endif
}

// While a sum is in flight, wrong arguments are MPI's to report, and the sum continues. MPICH 5.0.2
// dies of two of them if the program uses the MPI 5 ABI.
static void wrong_arguments(void) {
  MPI_Request r;
  MPI_Status s[2];
  int flag = 1, found = 1, indices[2];
  begin(MPI_COMM_WORLD, 0, &r);
  must(MPI_Waitall(-1, &r, s) != MPI_SUCCESS, "Waitall of -1");
  must(MPI_Testall(-1, &r, &flag, s) != MPI_SUCCESS, "Testall of -1");
  must(MPI_Testsome(-1, &r, &found, indices, s) != MPI_SUCCESS, "Testsome of -1");
#ifndef MPI_ABI
  must(MPI_Waitany(-1, &r, indices, MPI_STATUS_IGNORE) != MPI_SUCCESS, "Waitany of -1");
  must(MPI_Waitall(2, NULL, s) != MPI_SUCCESS, "Waitall without requests");
#endif
  must(MPI_Wait(NULL, MPI_STATUS_IGNORE) != MPI_SUCCESS, "Wait without a request");
  must(MPI_Test(&r, NULL, MPI_STATUS_IGNORE) != MPI_SUCCESS, "Test without a flag");
  must(MPI_Request_free(NULL) != MPI_SUCCESS, "Request_free without a request");
  must(MPI_Start(NULL) != MPI_SUCCESS, "Start without a request");
  must(MPI_Wait(&r, MPI_STATUS_IGNORE) == MPI_SUCCESS, "Wait after wrong arguments");
  must(memcmp(g_out[0], g_blocking[0], kCount * sizeof(float)) == 0, "after wrong arguments");
}

// Calls MPI_Cancel and MPI_Request_free for sums in flight, which the standard forbids. The sums
// must continue undisturbed.
static void cancel_and_free(void) {
  MPI_Request r;
  MPI_Status status;
  int cancelled = 1;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  wrong_arguments();
  for (int i = 0; i < kMany; ++i) {
    begin(MPI_COMM_WORLD, i, &r);
    int done = i % 2 == 0;
    while (!done) MPI_Request_get_status(r, &done, MPI_STATUS_IGNORE);
    must(MPI_Cancel(&r) != MPI_SUCCESS, "Cancel of a sum");
    must(MPI_Wait(&r, &status) == MPI_SUCCESS, "Wait after Cancel");
    MPI_Test_cancelled(&status, &cancelled);
    must(!cancelled, "a sum is not cancelled");
  }
  same("Cancel");
  begin(MPI_COMM_WORLD, 0, &r);
  MPI_Request_free(&r);
  must(r == MPI_REQUEST_NULL, "Request_free of a sum in flight");
  MPI_Allreduce(g_in[1], g_out[1], kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  same("a sum that was freed in flight ends before the next one");
#if HAS_PERSISTENT_SUMS
  for (int i = 0; i < kMany; ++i) {
    clear(i);
    MPI_Allreduce_init(g_in[i], g_out[i], kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &r);
    MPI_Start(&r);
    must(MPI_Cancel(&r) != MPI_SUCCESS, "Cancel of a persistent sum");
    must(MPI_Wait(&r, &status) == MPI_SUCCESS, "Wait after Cancel of a persistent sum");
    MPI_Test_cancelled(&status, &cancelled);
    must(!cancelled, "a persistent sum is not cancelled");
    must(memcmp(g_out[i], g_blocking[i], kCount * sizeof(float)) == 0, "persistent, cancelled");
    clear(i);
    MPI_Start(&r);
    MPI_Request_free(&r);
    must(r == MPI_REQUEST_NULL, "Request_free of a persistent sum in flight");
  }
  same("persistent sums that were freed in flight");
#endif
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
  begin_mpi_with(MPI_THREAD_MULTIPLE);
  fill();
  const char* const what = argc > 1 ? argv[1] : "";
  const int failed = strcmp(what, "failing") == 0, reuses = strcmp(what, "reused") == 0;
  if (!failed && !reuses) blocking(MPI_COMM_WORLD);
  if (failed) failing();
  if (reuses) reused();
  if (strcmp(what, "limited") == 0) limited();
  if (strcmp(what, "starting") == 0) started_by_hook();
  if (*what == '\0') {
    errors();
    cancel_and_free();
    blocking(MPI_COMM_WORLD);
  }
  if (g_rank == 0) printf("PASS errors of nonblocking sums\n");
  MPI_Finalize();
  return 0;
}
