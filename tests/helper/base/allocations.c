/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "tests/helper/base/allocations.h"

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The GNU C library's own allocation functions, under names that no other library replaces. */
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

static atomic_uintptr_t low, high; /* where libslimpi.so lies */
static atomic_ulong allocations, first_failing, last_failing;

static int find_library(struct dl_phdr_info* info, size_t size, void* unused) {
  (void)size, (void)unused;
  if (strstr(info->dlpi_name, "/libslimpi.so") == NULL) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X) != 0) {
      low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
      high = low + info->dlpi_phdr[i].p_memsz;
    }
  return 1;
}

__attribute__((constructor)) static void start(void) {
  dl_iterate_phdr(find_library, NULL);
}

/* Returns whether this caller gets memory. */
static int allows(const void* caller) {
  if ((uintptr_t)caller < low || (uintptr_t)caller >= high) return 1;
  const unsigned long number = ++allocations;
  if (number < first_failing || number > last_failing) return 1;
  errno = ENOMEM;
  return 0;
}

void* malloc(size_t bytes) {
  return allows(__builtin_return_address(0)) ? __libc_malloc(bytes) : NULL;
}
void* calloc(size_t count, size_t bytes) {
  return allows(__builtin_return_address(0)) ? __libc_calloc(count, bytes) : NULL;
}
void* realloc(void* memory, size_t bytes) {
  return allows(__builtin_return_address(0)) ? __libc_realloc(memory, bytes) : NULL;
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return allows(__builtin_return_address(0)) ? __libc_memalign(alignment, bytes) : NULL;
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  *memory = allows(__builtin_return_address(0)) ? __libc_memalign(alignment, bytes) : NULL;
  return *memory == NULL ? ENOMEM : 0;
}

unsigned long test_allocations(void) {
  return allocations;
}

void test_fail_allocations(unsigned long first, unsigned long more) {
  last_failing = 0; /* so that none fails in between */
  first_failing = allocations + first;
  last_failing = first == 0 ? 0 : allocations + first + more;
}
