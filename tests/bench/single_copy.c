// SPDX-License-Identifier: BSD-3-Clause
// single_copy: what it costs to read another process's memory in place (process_vm_readv), beside
// copies of the same bytes by memcpy: one copy, and two through a shared buffer, as
// SLIMPI_INTRA=cma and shm make them. Best of several repetitions; nothing else should run.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kMost = 64 << 20, kRepeats = 7, kBlock = 256 << 10 };
static char *theirs, *own, *shared;
static pid_t peer;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int in_place(size_t at, size_t bytes) {
  const struct iovec local = {own + at, bytes}, remote = {theirs + at, bytes};
  return process_vm_readv(peer, &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

static int by_memcpy(size_t at, size_t bytes) {
  memcpy(own + at, theirs + at, bytes);
  return 1;
}

// Through a shared buffer that stays in the caches.
static int through_segment(size_t at, size_t bytes) {
  memcpy(shared, theirs + at, bytes);
  memcpy(own + at, shared, bytes);
  return 1;
}

// GB/s of copying `bytes` in blocks; 0 where it is refused.
static double rate(int (*copy)(size_t, size_t), size_t bytes) {
  double best = 1e9;
  for (int i = 0; i < kRepeats; ++i) {
    const double begin = now();
    for (size_t at = 0; at < bytes; at += kBlock)
      if (!copy(at, bytes - at < kBlock ? bytes - at : kBlock)) return 0;
    const double spent = now() - begin;
    if (spent < best) best = spent;
  }
  return (double)bytes / best / 1e9;
}

int main(void) {
  int ready[2];
  char go;
  theirs = malloc(kMost);
  own = malloc(kMost);
  shared = mmap(NULL, kBlock, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (theirs == NULL || own == NULL || shared == MAP_FAILED || pipe(ready) != 0) return 1;
  memset(theirs, 1, kMost);
  memset(own, 2, kMost);
  peer = fork();
  if (peer == 0) {
    memset(theirs, 3, kMost);  // pages of its own
    if (write(ready[1], "", 1) != 1) _exit(1);
    alarm(120);
    pause();
  }
  if (read(ready[0], &go, 1) != 1) return 1;
  printf("%10s %12s %12s %12s   GB/s, blocks of %d KiB\n", "bytes", "in place", "segment", "memcpy",
         kBlock >> 10);
  for (size_t bytes = 64 << 10; bytes <= kMost; bytes *= 4)
    printf("%10zu %12.1f %12.1f %12.1f\n", bytes, rate(in_place, bytes),
           rate(through_segment, bytes), rate(by_memcpy, bytes));
  kill(peer, SIGKILL);
  waitpid(peer, NULL, 0);
  return 0;
}
