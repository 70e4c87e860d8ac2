/* SPDX-License-Identifier: BSD-3-Clause */
/* A program made of the steps that its arguments name, one after the other:
 *   init multiple session finalize exit:N   begin and end (multiple: MPI_THREAD_MULTIPLE, as init
 *                                with MULTIPLE in the environment)
 *   inside                       in a session: init, a sum on MPI_COMM_WORLD, and MPI_Finalize
 *   sessions                     alone: the exit status says whether this MPI has them
 *   atexit                       finalize in an exit handler
 *   sum:N isum:N persistent:N psum:N   sum N floats in place with MPI_Allreduce, MPI_Iallreduce,
 *                                MPI_Allreduce_init; with PMPI_Allreduce
 *   block:N iblock:N scatter:N[,M] iscatter:N[,M]   in place with MPI_Reduce_scatter_block,
 *                                MPI_Reduce_scatter, and nonblocking; pscatter:N[,M] persistent;
 *                                rank 0 gets M more than the others
 *   gather:N gatherv:N[,M] igatherv:N[,M] pgatherv:N[,M]   the same with MPI_Allgather,
 *                       MPI_Allgatherv and its forms; tgather:N with a derived type of a float
 *   dsum:N disum:N int:N         the same of doubles, with MPI_Allreduce, MPI_Iallreduce; of ints
 *   start:N wait                 isum:N in two steps; wait is for all sums that are started
 *   world self dup split:K       which communicator
 *   free disconnect back         free it, or keep it, and go back to the one before
 *   info:KEY=VALUE[;...] dupinfo:KEY=VALUE[;...] name:NAME return leave   on the communicator;
 *                                leave: its error handler leaves the step by longjmp
 *   pcontrol:LEVEL finish        MPI_Pcontrol; slimpi_finish, where there is one
 *   ftz up down                  the floating-point environment
 *   fork                         run /bin/true in a child, and let another child exit
 *   pid                          write the process id to the file pid.RANK
 *   chdir:DIRECTORY fsize:BYTES set:NAME=VALUE  the directory; how long a file may be; a variable
 *   streams                      close the standard streams, keep a copy of the output for the sums
 *   closed                       fail if one of the standard streams is open
 *   many:COUNT                   COUNT sums of 2000 floats, which print nothing
 *   memory:KIB                   RLIMIT_AS, above the address space in use
 *   sleep:MS stop:MS             milliseconds; stop: SIGSTOP, and a child sends SIGCONT
 *   tensor:NAME                  slimpi_describe_next, where there is one
 *   R?STEP                       STEP on rank R of the world only
 * Each sum prints a line: RANK STEP exact|near|wrong DIGEST, or RANK STEP error TEXT.
 * TEST_NO_MEMORY=RANK:BYTES in the environment: on that rank no aligned memory of BYTES or more can
 * be had. */
#include "tests/helper/base/program.h"

#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <sys/resource.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "tests/helper/base/children.h"
#include "tests/helper/mpi/collectives.h"
#include "tests/mpi/calls/step_kinds.h"

#define MOST 64
static MPI_Comm comms[MOST];
static int depth;
#if HAS_SESSIONS
static MPI_Session session = MPI_SESSION_NULL;
#endif

/* Replaces the C library's function: the linker exports it to preloaded libraries. */
void* aligned_alloc(size_t alignment, size_t bytes) {
  const char* limit = getenv("TEST_NO_MEMORY");
  int poor = -1;
  size_t most = 0;
  void* memory = NULL;
  if (alignment < sizeof memory) alignment = sizeof memory; /* posix_memalign takes no less */
  if (limit != NULL && sscanf(limit, "%d:%zu", &poor, &most) == 2 && g_rank == poor &&
      bytes >= most) {
    errno = ENOMEM;
    return NULL;
  }
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static MPI_Comm comm(void) {
  return comms[depth];
}

static void push(MPI_Comm made) {
  if (made != MPI_COMM_NULL && depth + 1 < MOST) comms[++depth] = made;
}

/* Returns a whole number, so that MPI's sums are exact in any order. */
static float value(int i, int rank) {
  return (float)((i * 7 + rank * 13) % 101);
}

/* Prints the line of a sum. `first`: the number, in the sum, of the first of the n elements. */
static void report(const char* step, int code, const float* x, int first, int n) {
  int rank, size;
  double worst = 0;
  unsigned digest = 2166136261u;
  if (code != MPI_SUCCESS) {
    printf("%d %s error %s\n", g_rank, step, error_text(code));
    fflush(stdout);
    return;
  }
  MPI_Comm_rank(comm(), &rank);
  MPI_Comm_size(comm(), &size);
  for (int i = 0; i < n; ++i) {
    double exact = 0;
    for (int r = 0; r < size; ++r) exact += value(first + i, r);
    worst = fmax(worst, fabs(x[i] - exact));
    unsigned bits;
    memcpy(&bits, x + i, sizeof bits);
    digest = (digest ^ bits) * 16777619u;
  }
  printf("%d %s %s %08x\n", g_rank, step,
         worst == 0         ? "exact"
         : worst < 4 * size ? "near"
                            : "wrong",
         digest);
  fflush(stdout);
}

static float* values(int n) {
  float* x = malloc((size_t)(n > 0 ? n : 1) * sizeof *x);
  int rank;
  MPI_Comm_rank(comm(), &rank);
  for (int i = 0; i < n; ++i) x[i] = value(i, rank);
  return x;
}

/* The sums between start:N and wait. */
enum { kMostStarted = 4 };
static float* started[kMostStarted];
static int lengths[kMostStarted], running;
static MPI_Request requests[kMostStarted];

static void start_sum(int n) {
  if (running == kMostStarted) MPI_Abort(MPI_COMM_WORLD, 1);
  started[running] = values(n);
  lengths[running] = n;
  MPI_Iallreduce(MPI_IN_PLACE, started[running], n, MPI_FLOAT, MPI_SUM, comm(), &requests[running]);
  ++running;
}

static void wait_for_sums(const char* step) {
  MPI_Status statuses[kMostStarted];
  const int code = MPI_Waitall(running, requests, statuses);
  for (int i = 0; i < running; ++i) {
    report(step, code == MPI_ERR_IN_STATUS ? statuses[i].MPI_ERROR : code, started[i], 0,
           lengths[i]);
    free(started[i]);
  }
  running = 0;
}

/* Makes the sum of a step, in place. Of a reduce-scatter rank 0 gets `more` elements more than the
 * others, and the last rank as many fewer. The ranks gather the exact sum. */
static void sum(const char* step, const struct kind* kind) {
  const char* const comma = strchr(step, ',');
  const int n = atoi(strchr(step, ':') + 1), more = comma == NULL ? 0 : atoi(comma + 1);
  const int doubles = kind->type == DOUBLES;
  MPI_Datatype type = doubles ? MPI_DOUBLE : MPI_FLOAT;
  int rank, size, code, first = 0, own = n, blocks[MOST_RANKS];
  float* x = values(n);
  double* wide = malloc((size_t)(n > 0 ? n : 1) * sizeof *wide);
  MPI_Comm_rank(comm(), &rank);
  MPI_Comm_size(comm(), &size);
  const int gathers = names_gather(kind->collective);
  if (names_blocks(kind->collective) || gathers) {
    for (int r = 0; r < size; ++r) blocks[r] = n / size;
    blocks[0] += more;
    blocks[size - 1] -= more;
    for (int r = 0; r < rank; ++r) first += blocks[r];
    own = blocks[rank];
  }
  for (int i = first; gathers && i < first + own; ++i)
    for (int r = 0; r < size; ++r) x[i] += r == rank ? 0 : value(i, r);
  for (int i = 0; doubles && i < n; ++i) wide[i] = x[i];
  if (kind->type == DERIVED) {
    MPI_Type_contiguous(1, MPI_FLOAT, &type);
    MPI_Type_commit(&type);
  }
  if (strcmp(kind->collective, "PMPI") == 0)
    code = PMPI_Allreduce(MPI_IN_PLACE, x, n, MPI_FLOAT, MPI_SUM, comm());
  else
    code = sum_elements(kind->collective, MPI_IN_PLACE, doubles ? (void*)wide : (void*)x, n,
                        names_blocks(kind->collective) || gathers ? blocks : NULL, 0,
                        type, comm());
  for (int i = 0; doubles && i < n; ++i) x[i] = (float)wide[i];
  report(step, code, x, gathers ? 0 : first, gathers ? n / size * size : own);
  if (kind->type == DERIVED) MPI_Type_free(&type);
  free(wide);
  free(x);
}

static void sum_ints(const char* step, int n) {
  int *x = calloc((size_t)n, sizeof *x), size, bad = 0;
  MPI_Comm_size(comm(), &size);
  for (int i = 0; i < n; ++i) x[i] = i;
  MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_INT, MPI_SUM, comm());
  for (int i = 0; i < n; ++i) bad |= x[i] != i * size;
  printf("%d %s %s\n", g_rank, step, bad ? "wrong" : "exact");
  fflush(stdout);
  free(x);
}

static void sum_often(int count) {
  static float x[2000];
  for (int i = 0; i < count; ++i) MPI_Allreduce(MPI_IN_PLACE, x, 2000, MPI_FLOAT, MPI_SUM, comm());
}

/* Sets info keys: KEY=VALUE, or several of them with semicolons between. */
static void set_info(const char* pairs, int dup) {
  char text[1024];
  MPI_Info info;
  MPI_Info_create(&info);
  snprintf(text, sizeof text, "%s", pairs);
  for (char* pair = strtok(text, ";"); pair != NULL; pair = strtok(NULL, ";")) {
    char* const equals = strchr(pair, '=');
    if (equals == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    *equals = '\0';
    MPI_Info_set(info, pair, equals + 1);
  }
  if (dup) {
    MPI_Comm made;
    MPI_Comm_dup_with_info(comm(), info, &made);
    push(made);
  } else {
    MPI_Comm_set_info(comm(), info);
  }
  MPI_Info_free(&info);
}

static void begin(const char* step) {
#if HAS_SESSIONS
  if (strcmp(step, "session") == 0) {
    MPI_Group group;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "steps", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comms[0]);
    MPI_Group_free(&group);
    MPI_Comm_rank(comms[0], &g_rank);
    return;
  }
#endif
  const int threads = strcmp(step, "multiple") == 0 || getenv("MULTIPLE") != NULL;
  begin_mpi_with(threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
  comms[0] = MPI_COMM_WORLD;
}

static void end(void) {
#if HAS_SESSIONS
  if (session != MPI_SESSION_NULL) {
    MPI_Comm_free(&comms[0]);
    MPI_Session_finalize(&session);
    return;
  }
#endif
  MPI_Finalize();
}

static void limit(int resource, rlim_t most) {
  const struct rlimit limit = {most, most};
  if (setrlimit(resource, &limit) != 0) exit(3);
}

static void limit_memory(long kib) {
  unsigned long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%lu", &pages) != 1) exit(3);
  fclose(file);
  limit(RLIMIT_AS, pages * (rlim_t)sysconf(_SC_PAGESIZE) + (rlim_t)kib * 1024);
}

static void write_pid(void) {
  char name[32];
  snprintf(name, sizeof name, "pid.%d", g_rank);
  FILE* const file = fopen(name, "w");
  if (file == NULL || fprintf(file, "%d\n", (int)getpid()) < 0 || fclose(file) != 0) exit(3);
}

/* Closes the standard streams. From here on what is printed goes to a copy of standard output. */
static void close_streams(void) {
  FILE* const copy = fdopen(fcntl(STDOUT_FILENO, F_DUPFD, 100), "w");
  if (copy == NULL || close(0) != 0 || close(1) != 0 || close(2) != 0) exit(3);
  stdout = copy;
}

static int has_stream(void) {
  return fcntl(0, F_GETFD) >= 0 || fcntl(1, F_GETFD) >= 0 || fcntl(2, F_GETFD) >= 0;
}

/* Returns the text that follows `name` in the step, or null. */
static const char* argument(const char* step, const char* name) {
  const size_t length = strlen(name);
  return strncmp(step, name, length) == 0 ? step + length : NULL;
}

static void run(const char* step) {
  const char* rest;
  MPI_Comm made = MPI_COMM_NULL;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i)
    if (argument(step, kinds[i].step) != NULL) {
      sum(step, &kinds[i]);
      return;
    }
  rest = step + strspn(step, "0123456789");
  if (rest[0] == '?') {
    if (atoi(step) == g_rank) run(rest + 1);
  } else if (!strcmp(step, "init") || !strcmp(step, "multiple") || !strcmp(step, "session")) {
    begin(step);
  } else if (!strcmp(step, "finalize")) {
    end();
  } else if (!strcmp(step, "inside")) {
    begin_mpi_with(MPI_THREAD_SINGLE);
    push(MPI_COMM_WORLD);
    run("sum:100000");
    --depth;
    MPI_Finalize();
  } else if (!strcmp(step, "atexit")) {
    atexit(end);
  } else if ((rest = argument(step, "exit:"))) {
    exit(atoi(rest));
  } else if ((rest = argument(step, "start:"))) {
    start_sum(atoi(rest));
  } else if (!strcmp(step, "wait")) {
    wait_for_sums(step);
  } else if ((rest = argument(step, "int:"))) {
    sum_ints(step, atoi(rest));
  } else if (!strcmp(step, "world")) {
    push(comms[0]);
  } else if (!strcmp(step, "self")) {
    push(MPI_COMM_SELF);
  } else if (!strcmp(step, "dup")) {
    MPI_Comm_dup(comm(), &made);
    push(made);
  } else if ((rest = argument(step, "split:"))) {
    MPI_Comm_split(comm(), g_rank % atoi(rest), g_rank, &made);
    push(made);
  } else if (!strcmp(step, "free")) {
    MPI_Comm_free(&comms[depth--]);
  } else if (!strcmp(step, "disconnect")) {
    MPI_Comm_disconnect(&comms[depth--]);
  } else if (!strcmp(step, "back")) {
    --depth;
  } else if ((rest = argument(step, "info:"))) {
    set_info(rest, 0);
  } else if ((rest = argument(step, "dupinfo:"))) {
    set_info(rest, 1);
  } else if ((rest = argument(step, "name:"))) {
    MPI_Comm_set_name(comm(), rest);
  } else if (!strcmp(step, "return")) {
    MPI_Comm_set_errhandler(comm(), MPI_ERRORS_RETURN);
  } else if (!strcmp(step, "leave")) {
    leave_by_longjmp(comm());
  } else if ((rest = argument(step, "pcontrol:"))) {
    MPI_Pcontrol(atoi(rest));
  } else if (!strcmp(step, "finish")) {
    void (*finish)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "slimpi_finish");
    if (finish != NULL) finish();
  } else if (!strcmp(step, "up") || !strcmp(step, "down")) {
    fesetround(step[0] == 'u' ? FE_UPWARD : FE_DOWNWARD);
#ifdef __SSE__
  } else if (!strcmp(step, "ftz")) {
    _mm_setcsr(_mm_getcsr() | 0x8040u);
#endif
  } else if ((rest = argument(step, "many:"))) {
    sum_often(atoi(rest));
  } else if ((rest = argument(step, "memory:"))) {
    limit_memory(atol(rest));
  } else if ((rest = argument(step, "sleep:"))) {
    usleep((useconds_t)atoi(rest) * 1000);
  } else if ((rest = argument(step, "stop:"))) {
    stop_for(atoi(rest));
  } else if ((rest = argument(step, "tensor:"))) {
    int (*describe)(const slimpi_tensor_t*) =
        (int (*)(const slimpi_tensor_t*))dlsym(RTLD_DEFAULT, "slimpi_describe_next");
    const slimpi_tensor_t tensor = {sizeof tensor, rest, NULL, 0};
    if (describe != NULL) describe(&tensor);
  } else if (!strcmp(step, "fork")) {
    let_children_exit();
  } else if (!strcmp(step, "pid")) {
    write_pid();
  } else if ((rest = argument(step, "chdir:"))) {
    if (chdir(rest) != 0) exit(3);
  } else if ((rest = argument(step, "set:"))) {
    putenv((char*)rest);
  } else if ((rest = argument(step, "fsize:"))) {
    limit(RLIMIT_FSIZE, strtoul(rest, NULL, 10));
  } else if (!strcmp(step, "streams")) {
    close_streams();
  } else if (!strcmp(step, "closed")) {
    if (has_stream()) exit(3);
  } else {
    fprintf(stderr, "no step is called %s\n", step);
    exit(3);
  }
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "sessions") == 0) return !HAS_SESSIONS;
  for (volatile int i = 1; i < argc; ++i)
    if (setjmp(before_step) == 0)
      run(argv[i]);
    else
      report(argv[i], left_with, NULL, 0, 0);
  return 0;
}
