/* SPDX-License-Identifier: BSD-3-Clause */
/* A program made of the steps that its arguments name, one after the other:
 *   init multiple session finalize exit:N   begin and end (multiple: MPI_THREAD_MULTIPLE, as init
 *                                with MULTIPLE in the environment)
 *   sessions                     alone: the exit status says whether this MPI has them
 *   atexit                       finalize in an exit handler
 *   sum:N psum:N int:N isum:N    sum N floats in place with MPI_Allreduce, with PMPI_Allreduce;
 *                                N ints; N floats with MPI_Iallreduce
 *   block:N scatter:N[,M] iscatter:N[,M]   in place with MPI_Reduce_scatter_block,
 *                                MPI_Reduce_scatter, MPI_Ireduce_scatter; rank 0 gets M more than
 *                                the others
 *   start:N wait                 isum:N in two steps
 *   dsum:N disum:N               the same of doubles, with MPI_Allreduce, with MPI_Iallreduce
 *   world self dup split:K free disconnect   which communicator; free goes back to the one before
 *   info:KEY=VALUE[;...] dupinfo:KEY=VALUE[;...] name:NAME return   on the communicator
 *   pcontrol:LEVEL finish        MPI_Pcontrol; slimpi_finish, where there is one
 *   ftz up down                  the floating-point environment
 *   fork                         run /bin/true in a child, and let another child exit
 *   many:COUNT                   COUNT sums of 2000 floats, which print nothing
 *   memory:KIB                   RLIMIT_AS, above the address space in use
 *   sleep:MS                     milliseconds
 *   tensor:NAME                  slimpi_describe_next, where there is one
 *   R?STEP                       STEP on rank R of the world only
 * Each sum prints a line: RANK STEP exact|near|wrong DIGEST, or RANK STEP error TEXT. */
#include "tests/helper/program.h"

#include <fenv.h>
#include <sys/resource.h>
#include <sys/wait.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "tests/helper/mpi4.h"

#define MOST 64
static MPI_Comm comms[MOST];
static int depth;
#if HAS_SESSIONS
static MPI_Session session = MPI_SESSION_NULL;
#endif

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
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length;
    MPI_Error_string(code, text, &length);
    for (char* c = text; *c != '\0'; ++c)
      if (*c == '\n') *c = ' ';
    printf("%d %s error %s\n", g_rank, step, text);
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

/* The sum between start:N and wait. */
static struct {
  float* x;
  int n, code;
  MPI_Request request;
} started;

static void start_sum(int n) {
  started.n = n;
  started.x = values(n);
  started.code =
      MPI_Iallreduce(MPI_IN_PLACE, started.x, n, MPI_FLOAT, MPI_SUM, comm(), &started.request);
}

static void wait_for_sum(const char* step) {
  if (started.code == MPI_SUCCESS) started.code = MPI_Wait(&started.request, MPI_STATUS_IGNORE);
  report(step, started.code, started.x, 0, started.n);
  free(started.x);
}

static void sum(const char* step, int n) {
  if (step[0] == 'i') {
    start_sum(n);
    wait_for_sum(step);
    return;
  }
  float* x = values(n);
  int code;
  if (step[0] == 'p') {
    code = PMPI_Allreduce(MPI_IN_PLACE, x, n, MPI_FLOAT, MPI_SUM, comm());
  } else {
    code = MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_FLOAT, MPI_SUM, comm());
  }
  report(step, code, x, 0, n);
  free(x);
}

/* Makes a reduce-scatter. Rank 0 gets `more` elements more than the others, and the last rank as
 * many fewer. */
static void scatter(const char* step, int n, int more) {
  float* x = malloc((size_t)(n > 0 ? n : 1) * sizeof *x);
  int rank, size, code, first = 0, counts[16];
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_rank(comm(), &rank);
  MPI_Comm_size(comm(), &size);
  for (int r = 0; r < size; ++r) counts[r] = n / size;
  counts[0] += more;
  counts[size - 1] -= more;
  for (int r = 0; r < rank; ++r) first += counts[r];
  for (int i = 0; i < n; ++i) x[i] = value(i, rank);
  if (step[0] == 'b')
    code = MPI_Reduce_scatter_block(MPI_IN_PLACE, x, n / size, MPI_FLOAT, MPI_SUM, comm());
  else if (step[0] == 's')
    code = MPI_Reduce_scatter(MPI_IN_PLACE, x, counts, MPI_FLOAT, MPI_SUM, comm());
  else
    code = MPI_Ireduce_scatter(MPI_IN_PLACE, x, counts, MPI_FLOAT, MPI_SUM, comm(), &request);
  if (code == MPI_SUCCESS && step[0] == 'i') code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  report(step, code, x, first, counts[rank]);
  free(x);
}

static void sum_doubles(const char* step, int n) {
  double* x = malloc((size_t)(n > 0 ? n : 1) * sizeof *x);
  float* got = malloc((size_t)(n > 0 ? n : 1) * sizeof *got);
  int rank, code;
  MPI_Comm_rank(comm(), &rank);
  for (int i = 0; i < n; ++i) x[i] = value(i, rank);
  if (step[1] == 'i') {
    MPI_Request request;
    code = MPI_Iallreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE, MPI_SUM, comm(), &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    code = MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE, MPI_SUM, comm());
  }
  for (int i = 0; i < n; ++i) got[i] = (float)x[i];
  report(step, code, got, 0, n);
  free(x);
  free(got);
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

static void make_children(void) {
  fflush(stdout);
  for (int kind = 0; kind < 2; ++kind) {
    const pid_t child = fork();
    if (child == 0) {
      if (kind == 0) execl("/bin/true", "true", (char*)NULL);
      exit(0);
    }
    waitpid(child, NULL, 0);
  }
}

static void limit_memory(long kib) {
  unsigned long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%lu", &pages) != 1) exit(3);
  fclose(file);
  const rlim_t most = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (rlim_t)kib * 1024;
  const struct rlimit limit = {most, most};
  if (setrlimit(RLIMIT_AS, &limit) != 0) exit(3);
}

/* Returns the text that follows `name` in the step, or null. */
static const char* argument(const char* step, const char* name) {
  const size_t length = strlen(name);
  return strncmp(step, name, length) == 0 ? step + length : NULL;
}

static void run(const char* step) {
  const char* rest;
  MPI_Comm made = MPI_COMM_NULL;
  if (step[0] >= '0' && step[0] <= '9' && step[1] == '?') {
    if (step[0] - '0' == g_rank) run(step + 2);
  } else if (!strcmp(step, "init") || !strcmp(step, "multiple") || !strcmp(step, "session")) {
    begin(step);
  } else if (!strcmp(step, "finalize")) {
    end();
  } else if (!strcmp(step, "atexit")) {
    atexit(end);
  } else if ((rest = argument(step, "exit:"))) {
    exit(atoi(rest));
  } else if ((rest = argument(step, "sum:")) || (rest = argument(step, "psum:")) ||
             (rest = argument(step, "isum:"))) {
    sum(step, atoi(rest));
  } else if ((rest = argument(step, "start:"))) {
    start_sum(atoi(rest));
  } else if (!strcmp(step, "wait")) {
    wait_for_sum(step);
  } else if ((rest = argument(step, "dsum:")) || (rest = argument(step, "disum:"))) {
    sum_doubles(step, atoi(rest));
  } else if ((rest = argument(step, "block:")) || (rest = argument(step, "scatter:")) ||
             (rest = argument(step, "iscatter:"))) {
    scatter(step, atoi(rest), strchr(rest, ',') == NULL ? 0 : atoi(strchr(rest, ',') + 1));
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
  } else if ((rest = argument(step, "info:"))) {
    set_info(rest, 0);
  } else if ((rest = argument(step, "dupinfo:"))) {
    set_info(rest, 1);
  } else if ((rest = argument(step, "name:"))) {
    MPI_Comm_set_name(comm(), rest);
  } else if (!strcmp(step, "return")) {
    MPI_Comm_set_errhandler(comm(), MPI_ERRORS_RETURN);
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
  } else if ((rest = argument(step, "tensor:"))) {
    int (*describe)(const slimpi_tensor_t*) =
        (int (*)(const slimpi_tensor_t*))dlsym(RTLD_DEFAULT, "slimpi_describe_next");
    const slimpi_tensor_t tensor = {sizeof tensor, rest, NULL, 0};
    if (describe != NULL) describe(&tensor);
  } else if (!strcmp(step, "fork")) {
    make_children();
  } else {
    fprintf(stderr, "no step is called %s\n", step);
    exit(3);
  }
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "sessions") == 0) return !HAS_SESSIONS;
  for (int i = 1; i < argc; ++i) run(argv[i]);
  return 0;
}
