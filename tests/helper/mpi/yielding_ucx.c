/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded, this makes MPICH give up its core while it waits. MPICH polls without a pause, and
 * tests have more ranks than there are cores, so a waiting rank would keep the rank that it waits
 * for from running until its time slice ends. MPICH polls with ucp_worker_progress() of UCX; if
 * that does nothing several times in a row, the rank yields, and later sleeps. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How many polls precede each pause, and how many pauses are yields before they become sleeps. */
enum { kPolls = 16, kYields = 10 };
/* How many yields of slimpi there are for each real one. slimpi yields after each poll of a device,
 * and an emulated device works only while it is polled. */
enum { kAsked = 16 };
static const struct timespec kSleep = {0, 20000};

/* Linux makes each sleep 50 us longer unless it is told not to, so that processors wake up less
 * often. */
__attribute__((constructor)) static void sleep_exactly(void) {
  prctl(PR_SET_TIMERSLACK, 1000ul);
}

typedef unsigned Progress(void* worker);
unsigned ucp_worker_progress(void* worker);

int sched_yield(void) {
  static __thread unsigned yields;
  return ++yields % kAsked == 0 ? (int)syscall(SYS_sched_yield) : 0;
}

/* Open MPI loads UCX privately, where dlsym(RTLD_NEXT) cannot find its symbols, so the library is
 * looked up by name. */
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
