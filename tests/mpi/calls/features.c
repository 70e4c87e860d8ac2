/* SPDX-License-Identifier: BSD-3-Clause */
/* Uses MPI as programs do besides sums, with float sums of 1 MiB in between. The first rank prints
 * its observations, which must be the same with and without the library. Usage: features WHAT:
 *   all FILE  communicators of every kind, error handlers, attributes, requests, windows, FILE
 *   threads   two threads, each with a communicator
 *   threadcomm  a communicator of MPICH 4.2 and newer, of which each thread is a rank
 *   spawn     this program as a child, which sums with its parents
 *   abort     MPI_Abort with the status 7 while the others are in a sum
 *   LEVEL     single, funneled, serialized or multiple for MPI_Init_thread */
#include "tests/helper/base/program.h"

#include <stdarg.h>

enum { kCount = 1 << 18 };
static int g_handled, g_world_deleted;

static void say(const char* format, ...) {
  va_list rest;
  if (g_rank != 0) return;
  va_start(rest, format);
  vprintf(format, rest);
  va_end(rest);
  fflush(stdout);
}

/* Returns whether a sum is as close as 8 bits allow on every rank of the communicator. */
static int close_sum(MPI_Comm comm) {
  int rank, size, remote = 0, inter, good, all;
  float* x = malloc(2 * kCount * sizeof *x);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Comm_test_inter(comm, &inter);
  if (inter) MPI_Comm_remote_size(comm, &remote);
  const int from = inter ? remote : size;
  fill_whole(x, kCount, 0, rank);
  good = inter ? MPI_Allreduce(x, x + kCount, kCount, MPI_FLOAT, MPI_SUM, comm)
               : MPI_Allreduce(MPI_IN_PLACE, x, kCount, MPI_FLOAT, MPI_SUM, comm);
  const double error = error_of_whole(inter ? x + kCount : x, kCount, 0, from);
  good = good == MPI_SUCCESS && (inter ? error == 0 : error < 0.5 * size);
  MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, comm);
  free(x);
  return all;
}

static void sum(const char* what, MPI_Comm comm) {
  say("%s: %s\n", what, comm == MPI_COMM_NULL ? "none" : close_sum(comm) ? "close" : "wrong");
}

static void sum_and_free(const char* what, MPI_Comm comm) {
  sum(what, comm);
  if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
}

static void handle(MPI_Comm* comm, int* code, ...) {
  int class, length;
  char name[MPI_MAX_OBJECT_NAME];
  MPI_Error_class(*code, &class);
  MPI_Comm_get_name(*comm, name, &length);
  say("handler: %s, a count: %d\n", name, class == MPI_ERR_COUNT);
  ++g_handled;
}

static void communicators(void) {
  MPI_Comm comm, other;
  MPI_Request request;
  MPI_Group world, group;
  MPI_Info info;
  int sizes[2] = {2, g_size / 2}, periods[2] = {0, 0}, keep[2] = {0, 1}, compared;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
  sum_and_free("split_type", comm);
  MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  sum("idup", comm);
  MPI_Comm_compare(comm, MPI_COMM_WORLD, &compared);
  say("idup: congruent %d\n", compared == MPI_CONGRUENT);
  MPI_Comm_disconnect(&comm);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_excl(world, 1, (int[]){g_size - 1}, &group);
  comm = MPI_COMM_NULL;
  if (g_rank != g_size - 1) MPI_Comm_create_group(MPI_COMM_WORLD, group, 3, &comm);
  sum_and_free("create_group", comm);
  MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
  sum_and_free("create", comm);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  MPI_Info_create(&info);
  MPI_Info_set(info, "slimpi_bits", "8");
  MPI_Info_set(info, "of_the_program", "kept");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
  MPI_Info_free(&info);
  sum_and_free("dup_with_info", comm);
  MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 1, &comm);
  sum("cart", comm);
  MPI_Cart_sub(comm, keep, &other);
  sum_and_free("cart_sub", other);
  MPI_Comm_free(&comm);
  MPI_Comm_split(MPI_COMM_WORLD, g_rank % 2, -g_rank, &comm);
  MPI_Intercomm_create(comm, 0, MPI_COMM_WORLD, g_size - 1 - g_rank % 2, 4, &other);
  sum("intercommunicator", other);
  MPI_Comm_free(&comm);
  MPI_Intercomm_merge(other, g_rank % 2, &comm);
  MPI_Comm_free(&other);
  sum_and_free("merged", comm);
  comm = MPI_COMM_WORLD;
#ifndef MPI_ABI /* the standard ABI has no functions of Fortran */
  comm = MPI_Comm_f2c(MPI_Comm_c2f(comm));
#endif
  sum("c2f and f2c", comm);
}

static void errors(void) {
  MPI_Comm comm;
  MPI_Errhandler mine, got;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, "named");
  MPI_Comm_create_errhandler(handle, &mine);
  MPI_Comm_set_errhandler(comm, mine);
  sum("errors, before", comm);
  MPI_Comm_get_errhandler(comm, &got);
  say("errors: the program's handler %d\n", got == mine);
  MPI_Errhandler_free(&got);
  MPI_Errhandler_free(&mine);
  MPI_Comm_call_errhandler(comm, MPI_ERR_COUNT); /* Debian's MPICH checks no argument */
  say("errors: %d handled\n", g_handled);
  sum_and_free("errors, after", comm);
}

static void requests(void) {
  MPI_Comm comm;
  MPI_Request r[4];
  MPI_Status status, several[4];
  int in = -1, done[4], flag, total = 0, other = g_rank ^ 1;
  float* x = calloc(kCount, sizeof *x);
  x[5] = 1;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Irecv(&in, 1, MPI_INT, other, 8, comm, &r[0]);
  MPI_Isend(&g_rank, 1, MPI_INT, other, 8, comm, &r[1]);
  MPI_Iallreduce(MPI_IN_PLACE, x, kCount, MPI_FLOAT, MPI_SUM, comm, &r[2]);
  r[3] = MPI_REQUEST_NULL;
  while (total < 3) {
    int now = 0;
    MPI_Waitsome(4, r, &now, done, several);
    total += now;
  }
  say("requests: from %d, %.1f\n", in, (double)x[5]);
  MPI_Irecv(&in, 1, MPI_INT, other, 9, comm, &r[0]);
  MPI_Cancel(&r[0]);
  MPI_Wait(&r[0], &status);
  MPI_Test_cancelled(&status, &flag);
  say("requests: cancelled %d\n", flag);
  MPI_Comm_disconnect(&comm); /* waits for every request on it */
  free(x);
}

static void windows_and_files(const char* path) {
  MPI_Win window;
  MPI_File file;
  MPI_Comm node;
  int *base, got = -1, back = -1;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Win_allocate_shared(sizeof *base, sizeof *base, MPI_INFO_NULL, node, &base, &window);
  *base = 10 + g_rank;
  MPI_Win_fence(0, window);
  MPI_Get(&got, 1, MPI_INT, (g_rank + 1) % g_size, 0, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  say("window: %d\n", got);
  MPI_Win_free(&window);
  MPI_Comm_free(&node);
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, g_rank * (int)sizeof got, &got, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_read_at_all(file, ((g_rank + 1) % g_size) * (int)sizeof got, &back, 1, MPI_INT,
                       MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  say("file: %d\n", back);
}

static int deleted(MPI_Comm comm, int keyval, void* value, void* extra) {
  int finalized;
  (void)keyval, (void)extra;
  MPI_Finalized(&finalized);
  say("deleted: %s, finalized %d\n", (char*)value, finalized);
  if (comm == MPI_COMM_SELF) sum("deleted", MPI_COMM_WORLD);
  ++g_world_deleted;
  return MPI_SUCCESS;
}

static void all(const char* path) {
  int keyval, *bound, flag;
  communicators();
  errors();
  requests();
  windows_and_files(path);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
  say("tag_ub: %d %d\n", flag, *bound);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &keyval, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, "self");
  MPI_Comm_free_keyval(&keyval);
}

static void* in_thread(void* comm) {
  static int good[2] = {1, 1};
  int* const mine = &good[comm != NULL && *(MPI_Comm*)comm != MPI_COMM_WORLD];
  for (int i = 0; i < 5; ++i) *mine &= close_sum(*(MPI_Comm*)comm);
  return mine;
}

static void threads(void) {
  MPI_Comm comm[2] = {MPI_COMM_WORLD, MPI_COMM_NULL};
  pthread_t thread;
  void* good;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm[1]);
  pthread_create(&thread, NULL, in_thread, &comm[1]);
  const int own = *(int*)in_thread(&comm[0]);
  pthread_join(thread, &good);
  say("threads: %d %d\n", own, *(int*)good);
  MPI_Comm_free(&comm[1]);
}

static int (*start_threads)(MPI_Comm), (*finish_threads)(MPI_Comm);

static void* as_rank(void* comm) {
  static int good = 1, bad = 0;
  start_threads(*(MPI_Comm*)comm);
  const int close = close_sum(*(MPI_Comm*)comm) && close_sum(*(MPI_Comm*)comm);
  finish_threads(*(MPI_Comm*)comm);
  return close ? &good : &bad;
}

static void thread_communicator(void) {
  int (*make)(MPI_Comm, int, MPI_Comm*), (*end)(MPI_Comm*);
  MPI_Comm comm;
  pthread_t thread;
  void* good;
  *(void**)&make = dlsym(RTLD_DEFAULT, "MPIX_Threadcomm_init");
  *(void**)&start_threads = dlsym(RTLD_DEFAULT, "MPIX_Threadcomm_start");
  *(void**)&finish_threads = dlsym(RTLD_DEFAULT, "MPIX_Threadcomm_finish");
  *(void**)&end = dlsym(RTLD_DEFAULT, "MPIX_Threadcomm_free");
  if (make == NULL || start_threads == NULL || finish_threads == NULL || end == NULL) return;
  make(MPI_COMM_WORLD, 2, &comm);
  pthread_create(&thread, NULL, as_rank, &comm);
  const int own = *(int*)as_rank(&comm);
  pthread_join(thread, &good);
  say("threads as ranks: %d %d\n", own, *(int*)good);
  end(&comm);
}

static void spawn(char* program, MPI_Comm parents) {
  MPI_Comm inter = parents, merged;
  char* words[] = {"spawn", NULL};
  if (parents == MPI_COMM_NULL)
    MPI_Comm_spawn(program, words, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                   MPI_ERRCODES_IGNORE);
  MPI_Intercomm_merge(inter, parents != MPI_COMM_NULL, &merged);
  const int good = close_sum(merged);
  if (parents == MPI_COMM_NULL) say("spawn: merged %d\n", good);
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&inter);
  if (parents == MPI_COMM_NULL) sum("spawn: the world", MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  const struct {
    const char* name;
    int level;
  } levels[] = {{"single", MPI_THREAD_SINGLE},         {"funneled", MPI_THREAD_FUNNELED},
                {"serialized", MPI_THREAD_SERIALIZED}, {"multiple", MPI_THREAD_MULTIPLE},
                {"threads", MPI_THREAD_MULTIPLE},      {"threadcomm", MPI_THREAD_MULTIPLE}};
  int level = MPI_THREAD_SINGLE, got, is_main, named = 0;
  MPI_Comm parents;
  for (int i = 0; i < 6; ++i)
    if (!strcmp(what, levels[i].name)) level = levels[i].level, named = i < 4;
  const int provided = begin_mpi_with(level);
  MPI_Comm_get_parent(&parents);
  if (parents == MPI_COMM_NULL) {
    MPI_Query_thread(&got);
    MPI_Is_thread_main(&is_main);
    say("%s: provided %d, asked again %d, main %d\n", what, provided, got, is_main);
  }
  if (named) sum("world", MPI_COMM_WORLD);
  if (!strcmp(what, "all") && argc > 2) all(argv[2]);
  if (!strcmp(what, "threads") && provided == MPI_THREAD_MULTIPLE) threads();
  if (!strcmp(what, "threadcomm") && provided == MPI_THREAD_MULTIPLE) {
    thread_communicator();
    sum("world", MPI_COMM_WORLD);
  }
  if (!strcmp(what, "spawn")) spawn(argv[0], parents);
  if (!strcmp(what, "abort")) {
    sum("world", MPI_COMM_WORLD);
    if (g_rank == 0) {
      usleep(200 * 1000); /* launchers drop what ranks wrote just before an abort */
      MPI_Abort(MPI_COMM_WORLD, 7);
    }
    sum("without the first rank", MPI_COMM_WORLD);
  }
  MPI_Finalize();
  if (!strcmp(what, "all")) say("deleted: %d in all\n", g_world_deleted);
  return 0;
}
