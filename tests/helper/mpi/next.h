/* SPDX-License-Identifier: BSD-3-Clause */
/* For libraries that are preloaded behind slimpi: NEXT(MPI_Send) is MPI's own function. Included
 * after _GNU_SOURCE is defined. */
#pragma once
#include <dlfcn.h>
#include <stdlib.h>

static void* next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == NULL) abort();
  return found;
}
#define NEXT(name) ((__typeof__(&name))next(#name))
