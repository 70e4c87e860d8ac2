/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded in front of process_vm_readv. CMA_REFUSE=1: the kernel refuses, as under Yama, seccomp
 * or in a container. CMA_FAIL_AFTER=N: so many calls succeed, then the peer's pages are gone. At
 * exit the number of calls is appended to the file CMA_COUNT. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls;

ssize_t process_vm_readv(pid_t pid, const struct iovec* local, unsigned long locals,
                         const struct iovec* remote, unsigned long remotes, unsigned long flags) {
  const char* const after = getenv("CMA_FAIL_AFTER");
  const long number = atomic_fetch_add(&calls, 1);
  if (getenv("CMA_REFUSE") != NULL) {
    errno = EPERM;
    return -1;
  }
  if (after != NULL && number >= atol(after)) {
    errno = EFAULT;
    return -1;
  }
  return syscall(SYS_process_vm_readv, pid, local, locals, remote, remotes, flags);
}

__attribute__((destructor)) static void report(void) {
  const char* const file = getenv("CMA_COUNT");
  char line[32];
  const int length = snprintf(line, sizeof line, "%ld\n", atomic_load(&calls));
  const int out = file == NULL ? -1 : open(file, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (out < 0) return;
  if (write(out, line, (size_t)length) != length) abort();
  close(out);
}
