/* SPDX-License-Identifier: BSD-3-Clause */
/* A library to be preloaded: MPICH gives its core away while it waits. By itself it polls without
 * a pause, and tests have more ranks than there are cores: a rank that waits keeps the one that it
 * waits for from its core until the time slice ends. MPICH polls by ucp_worker_progress() of UCX;
 * where that does nothing again and again, the rank yields, then sleeps. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The polls before each pause, and how many pauses are yields before they become sleeps. */
enum { kPolls = 16, kYields = 10 };
/* Only one of so many yields of slimpi is a real one: slimpi yields after each poll of a device,
 * and an emulated device works only while it is polled. */
enum { kAsked = 16 };
static const struct timespec kSleep = {0, 20000};

/* By itself Linux makes each sleep 50 us longer, to wake up less often. */
__attribute__((constructor)) static void sleep_exactly(void) {
  prctl(PR_SET_TIMERSLACK, 1000ul);
}

typedef unsigned Progress(void* worker);
unsigned ucp_worker_progress(void* worker);

int sched_yield(void) {
  static __thread unsigned yields;
  return ++yields % kAsked == 0 ? (int)syscall(SYS_sched_yield) : 0;
}

/* Open MPI loads UCX for itself alone, where no symbol lookup of ours goes. */
static Progress* find(void) {
  Progress* found = NULL;
  *(void**)&found = dlsym(RTLD_NEXT, "ucp_worker_progress");
  if (found != NULL) return found;
  void* const ucx = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
  *(void**)&found = dlsym(ucx, "ucp_worker_progress");
  return found;
}

unsigned ucp_worker_progress(void* worker) {
  static Progress* next;
  static __thread unsigned idle;
  if (next == NULL) next = find();
  const unsigned done = next(worker);
  if (done != 0) {
    idle = 0;
  } else if (++idle % kPolls == 0) {
    if (idle <= kPolls * kYields)
      syscall(SYS_sched_yield);
    else
      nanosleep(&kSleep, NULL);
  }
  return done;
}
