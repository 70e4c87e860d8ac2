/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts children of a test program with fork(). */
#pragma once
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Starts two children: one becomes another program, and one exits. Waits for both. */
static inline void let_children_exit(void) {
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

/* Stops this process, with all its threads, for `ms` milliseconds. */
static inline void stop_for(int ms) {
  const pid_t stopped = getpid(), child = fork();
  if (child == 0) {
    usleep((useconds_t)ms * 1000);
    kill(stopped, SIGCONT);
    _exit(0);
  }
  kill(stopped, SIGSTOP);
  waitpid(child, NULL, 0);
}
