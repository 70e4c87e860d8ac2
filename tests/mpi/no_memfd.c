/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded, this stands in for a system that refuses memfd_create. */
#include <errno.h>

int memfd_create(const char* name, unsigned int flags);
int memfd_create(const char* name, unsigned int flags) {
  (void)name;
  (void)flags;
  errno = ENOSYS;
  return -1;
}
