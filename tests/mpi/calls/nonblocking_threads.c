// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking and persistent sums of several threads. Each of kThreads threads begins sums on a
// communicator of its own, with blocking sums and calls that slimpi leaves to MPI in between; the
// next thread completes them. Each result is compared byte by byte with that of the blocking call.
// Afterwards, operations and signal handlers of the program run while fibers of sums do. Run by
// nonblocking.sh, and by sanitize.sh under ThreadSanitizer.
#include "tests/mpi/calls/nonblocking.h"

#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/time.h>

enum { kThreads = 3, kSteps = 8, kInFlight = 4 };

// The requests that a thread passes to the next thread. A batch is empty or full.
struct Batch {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  MPI_Request requests[kInFlight];
  float* out[kInFlight];
  int full;
};

struct Thread {
  int number;
  MPI_Comm comm;
  struct Batch batch;  // from the thread before
  float* out[kInFlight];
  pthread_t thread;
};

static struct Thread g_threads[kThreads];

static void set_full(struct Batch* batch, int full) {
  batch->full = full;
  pthread_cond_broadcast(&batch->changed);
  pthread_mutex_unlock(&batch->mutex);
}

static void wait_for(struct Batch* batch, int full) {
  pthread_mutex_lock(&batch->mutex);
  while (batch->full != full) pthread_cond_wait(&batch->changed, &batch->mutex);
}

static void complete_batch(struct Batch* batch, int way) {
  must(complete((enum way)(way % WAYS), kInFlight, batch->requests, NULL) == MPI_SUCCESS, "a code");
  for (int i = 0; i < kInFlight; ++i)
    must(memcmp(batch->out[i], g_blocking[i], kCount * sizeof(float)) == 0,
         "a sum that another thread completes");
}

static void* run(void* argument) {
  struct Thread* const self = argument;
  struct Batch* const to = &g_threads[(self->number + 1) % kThreads].batch;
  MPI_Request persistent = MPI_REQUEST_NULL;
  float* const between = malloc(kCount * sizeof *between);
  const int next = (g_rank + 1) % g_size, before = (g_rank + g_size - 1) % g_size;
#if HAS_PERSISTENT_SUMS
  MPI_Allreduce_init(g_in[4], between, kCount, MPI_FLOAT, MPI_SUM, self->comm, MPI_INFO_NULL,
                     &persistent);
#endif
  for (int step = 0; step < kSteps; ++step) {
    int got = -1;
    double ones = 1, sum = 0;
    wait_for(to, 0);
    for (int i = 0; i < kInFlight; ++i) {
      memset(self->out[i], 0, kCount * sizeof(float));
      MPI_Iallreduce(g_in[i], self->out[i], kCount, MPI_FLOAT, MPI_SUM, self->comm,
                     &to->requests[i]);
      to->out[i] = self->out[i];
      if (i == 1) MPI_Allreduce(&ones, &sum, 1, MPI_DOUBLE, MPI_SUM, self->comm);
    }
    set_full(to, 1);
    must(sum == g_size, "a sum that is left to MPI");
    MPI_Sendrecv(&g_rank, 1, MPI_INT, next, 6, &got, 1, MPI_INT, before, 6, self->comm,
                 MPI_STATUS_IGNORE);
    must(got == before, "a message");
    if (persistent != MPI_REQUEST_NULL) {
      MPI_Start(&persistent);
      MPI_Wait(&persistent, MPI_STATUS_IGNORE);
      must(memcmp(between, g_blocking[4], kCount * sizeof(float)) == 0, "a persistent sum");
    }
    wait_for(&self->batch, 1);
    complete_batch(&self->batch, step + self->number);
    set_full(&self->batch, 0);
    MPI_Allreduce(g_in[5], between, kCount, MPI_FLOAT, MPI_SUM, self->comm);
    must(memcmp(between, g_blocking[5], kCount * sizeof(float)) == 0, "a blocking sum between");
  }
  if (persistent != MPI_REQUEST_NULL) MPI_Request_free(&persistent);
  free(between);
  return NULL;
}

#if HAS_PERSISTENT_SUMS
static void make_all(MPI_Request* requests) {
  for (int i = 0; i < kMany; ++i)
    MPI_Allreduce_init(g_in[i], g_out[i], kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &requests[i]);
}

static void* free_all(void* requests) {
  for (int i = 0; i < kMany; ++i) MPI_Request_free((MPI_Request*)requests + i);
  return NULL;
}
#endif

// Makes persistent sums of one communicator while another thread frees those of others. Both change
// the channels of the internal communicator.
static void make_and_free(void) {
#if HAS_PERSISTENT_SUMS
  MPI_Request requests[2][kMany];
  pthread_t thread;
  make_all(requests[0]);
  for (int round = 0; round < 4; ++round) {
    pthread_create(&thread, NULL, &free_all, requests[round % 2]);
    make_all(requests[1 - round % 2]);
    pthread_join(thread, NULL);
  }
  MPI_Start(&requests[0][0]);
  MPI_Wait(&requests[0][0], MPI_STATUS_IGNORE);
  must(memcmp(g_out[0], g_blocking[0], kCount * sizeof(float)) == 0, "a sum after frees");
  free_all(requests[0]);
#endif
}

// An operation that needs much of its stack. MPI may call it in the fiber of a sum.
static void add_on_stack(void* in, void* sum, int* count, MPI_Datatype* type) {
  volatile char room[3 << 20] = {1};
  for (int i = 0; i < *count && *type == MPI_INT; ++i) ((int*)sum)[i] += ((int*)in)[i] * room[0];
}

static void large_operation(MPI_Comm comm) {
  int one[1000] = {1}, sum[1000];
  MPI_Request r[2];
  MPI_Op op;
  MPI_Op_create(add_on_stack, 1, &op);
  for (int i = 0; i < kMany; ++i) {
    begin(comm, i, &r[0]);
    MPI_Iallreduce(one, sum, 1000, MPI_INT, op, comm, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    must(sum[0] == g_size, "an operation of the program");
  }
  // In the first sum of a communicator a thread of slimpi waits in MPI, where it also advances the
  // program's own requests.
  MPI_Comm_dup(comm, &comm);
  MPI_Request all[kMany];
  static int sums[kMany][1000];
  for (int i = 1; i < kMany; ++i)
    MPI_Iallreduce(one, sums[i], 1000, MPI_INT, op, MPI_COMM_WORLD, &all[i]);
  begin(comm, 0, &all[0]);
  usleep((useconds_t)g_rank * 2000);
  MPI_Waitall(kMany, all, MPI_STATUSES_IGNORE);
  for (int i = 1; i < kMany; ++i) must(sums[i][0] == g_size, "an operation beside a first sum");
  same_of(0, "a first sum beside operations of the program");
  MPI_Comm_free(&comm);
  MPI_Op_free(&op);
}

static volatile sig_atomic_t g_handled;

static void handle(int number) {
  g_handled += number == SIGUSR1;
}

// Sends a signal that the program has blocked since it started a sum. The signal must wait until
// the program unblocks it.
static void blocked_signal(MPI_Comm comm) {
  sigset_t one, before;
  MPI_Request r;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  signal(SIGUSR1, handle);
  for (int i = 0; i < kMany; ++i) {
    begin(comm, i, &r);
    pthread_sigmask(SIG_BLOCK, &one, &before);
    raise(SIGUSR1);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    must(g_handled == i, "a blocked signal is not delivered in MPI_Wait");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    must(g_handled == i + 1, "a signal is delivered when it is unblocked");
  }
  signal(SIGUSR1, SIG_DFL);
  same("a blocked signal");
}

static void handle_on_stack(int number) {
  volatile char room[600 << 10];
  for (size_t i = 0; i < sizeof room; i += 1024) room[i] = 1;
  g_handled += number == SIGALRM ? room[0] : 0;
}

// Makes sums while a signal handler that needs much of its stack runs every millisecond.
static void large_handler(MPI_Comm comm) {
  const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
  struct sigaction action = {.sa_handler = handle_on_stack, .sa_flags = SA_RESTART};
  MPI_Request r[kMany];
  sigaction(SIGALRM, &action, NULL);
  g_handled = 0;
  setitimer(ITIMER_REAL, &often, NULL);
  for (int round = 0; round < 8; ++round) {
    begin_all(comm, r);
    complete((enum way)(round % WAYS), kMany, r, NULL);
    same("sums while a signal handler runs");
  }
  setitimer(ITIMER_REAL, &never, NULL);
  must(g_handled > 0, "a signal handler runs");
  signal(SIGALRM, SIG_DFL);
}

enum { kPage = 1 << 16 };  // at least a page of the machine
static char* g_tracked;    // the buffer whose pages repair() makes writable
static const size_t kTracked = (kCount * sizeof(float) / kPage + 1) * kPage;

static void repair(int number, siginfo_t* info, void* context) {
  const ptrdiff_t at = (char*)info->si_addr - g_tracked;
  (void)context;
  if (at < 0 || (size_t)at >= kTracked) signal(number, SIG_DFL);
  mprotect(g_tracked + at / kPage * kPage, kPage, PROT_READ | PROT_WRITE);
  ++g_handled;
}

// The program finds out which pages are written, as checkpoints and garbage collectors do: the
// result is protected, and its signal handler repairs each fault. Either the program waits for the
// sum, or a thread of slimpi completes it.
static void tracked_pages(MPI_Comm comm) {
  struct sigaction action = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};
  void* const memory =
      mmap(NULL, kTracked + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MPI_Request r;
  g_tracked = (char*)(((uintptr_t)memory + kPage - 1) / kPage * kPage);
  sigaction(SIGSEGV, &action, NULL);
  for (int i = 0; i < kMany; ++i) {
    memset(g_tracked, 0, kTracked);
    mprotect(g_tracked, kTracked, PROT_READ);
    g_handled = 0;
    MPI_Iallreduce(g_in[i], g_tracked, kCount, MPI_FLOAT, MPI_SUM, comm, &r);
    if (i % 2 == 0) usleep(20000);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    must(memcmp(g_tracked, g_blocking[i], kCount * sizeof(float)) == 0, "a sum into tracked pages");
    must(g_handled > 0, "the faults of tracked pages");
  }
  signal(SIGSEGV, SIG_DFL);
  munmap(memory, kTracked + kPage);
}

int main(void) {
  const int provided = begin_mpi_with(MPI_THREAD_MULTIPLE);
  must(provided == MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE");
  fill();
  blocking(MPI_COMM_WORLD);
  for (int i = 0; i < kThreads; ++i) {
    struct Thread* const thread = &g_threads[i];
    thread->number = i;
    pthread_mutex_init(&thread->batch.mutex, NULL);
    pthread_cond_init(&thread->batch.changed, NULL);
    for (int j = 0; j < kInFlight; ++j) thread->out[j] = malloc(kCount * sizeof(float));
    MPI_Comm_dup(MPI_COMM_WORLD, &thread->comm);
  }
  for (int i = 0; i < kThreads; ++i)
    pthread_create(&g_threads[i].thread, NULL, &run, &g_threads[i]);
  for (int i = 0; i < kThreads; ++i) pthread_join(g_threads[i].thread, NULL);
  for (int i = 0; i < kThreads; ++i) MPI_Comm_free(&g_threads[i].comm);
  make_and_free();
  large_operation(MPI_COMM_WORLD);
  blocked_signal(MPI_COMM_WORLD);
  large_handler(MPI_COMM_WORLD);
  tracked_pages(MPI_COMM_WORLD);
  if (g_rank == 0) printf("PASS nonblocking sums have the bytes of blocking ones\n");
  MPI_Finalize();
  return 0;
}
