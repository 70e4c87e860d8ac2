/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded, this makes memfd_create fail, as on a system that refuses it. */
#include <errno.h>

int memfd_create(const char* name, unsigned int flags);
int memfd_create(const char* name, unsigned int flags) {
  (void)name;
  (void)flags;
  errno = ENOSYS;
  return -1;
}
