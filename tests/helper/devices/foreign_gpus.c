/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces the functions of AMD's and Intel's GPU libraries that slimpi asks about a pointer. GPU
 * memory is ordinary memory here, mapped as a driver would. The name under which the library is
 * loaded decides which of the two it replaces. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { HIP_INVALID_VALUE = 1, ZE_UNINITIALIZED = 0x78000001, ZE_NULL_HANDLE = 0x78000005 };

static char* g_memory;
static size_t g_bytes;
static int g_error, g_initialized, g_context;

struct attributes {
  int type, device;
  void *device_pointer, *host_pointer;
  int managed;
  unsigned flags;
};
struct properties {
  int stype;
  void* next;
  int type;
  uint64_t id, page_size;
};

int hipPointerGetAttributes(struct attributes* found, const void* pointer);
int hipPeekAtLastError(void);
int hipGetLastError(void);
int zeInit(uint32_t flags);
int zeDriverGet(uint32_t* count, void** drivers);
int zeContextCreate(void* driver, const void* description, void** context);
int zeMemGetAllocProperties(void* context, const void* pointer, struct properties* found,
                            void** device);
void* foreign_take(size_t bytes);

/* Makes the only block of GPU memory that the library has. */
void* foreign_take(size_t bytes) {
  g_bytes = bytes;
  g_memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (g_memory == MAP_FAILED) g_memory = NULL;
  return g_memory;
}

static int owns(const void* pointer) {
  const char* const at = pointer;
  return g_memory != NULL && at >= g_memory && at < g_memory + g_bytes;
}

/* Behaves like version 5, which fails for memory that it does not know. */
int hipPointerGetAttributes(struct attributes* found, const void* pointer) {
  if (!owns(pointer)) return g_error = HIP_INVALID_VALUE;
  *found = (struct attributes){1, 0, (void*)(uintptr_t)pointer, NULL, 0, 0};
  return 0;
}
int hipPeekAtLastError(void) {
  return g_error;
}
int hipGetLastError(void) {
  const int error = g_error;
  g_error = 0;
  return error;
}

int zeInit(uint32_t flags) {
  g_initialized = flags == 0;
  return 0;
}
int zeDriverGet(uint32_t* count, void** drivers) {
  if (!g_initialized) return ZE_UNINITIALIZED;
  if (*count != 0 && drivers != NULL) drivers[0] = &g_initialized;
  *count = 1;
  return 0;
}
int zeContextCreate(void* driver, const void* description, void** context) {
  if (driver != &g_initialized || *(const int*)description != 0xd) return ZE_NULL_HANDLE;
  *context = &g_context;
  return 0;
}
int zeMemGetAllocProperties(void* context, const void* pointer, struct properties* found,
                            void** device) {
  (void)device;
  if (context != &g_context || found->stype != 0x17) return ZE_NULL_HANDLE;
  found->type = owns(pointer) ? 2 : 0;
  return 0;
}
