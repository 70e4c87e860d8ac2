/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/helper/devices/gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long pointer;

static void *g_library, *g_second;

void* gpu_function(const char* name) {
  return g_library == NULL ? NULL : dlsym(g_library, name);
}

/* Calls the named function of the driver with arguments of these types. */
#define CALL(name, types, ...) call(#name, ((int(*) types)find(#name))(__VA_ARGS__))

static void* find(const char* name) {
  void* found = gpu_function(name);
  if (found == NULL) {
    fprintf(stderr, "the CUDA driver has no %s\n", name);
    exit(3);
  }
  return found;
}

static void call(const char* name, int result) {
  if (result == 0) return;
  fprintf(stderr, "%s fails with error %d\n", name, result);
  exit(3);
}

int gpu_open(void) {
  int device = 0, count = 0;
  void* context = NULL;
  g_library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (g_library == NULL) return 77;
  if (((int (*)(unsigned))find("cuInit"))(0) != 0) return 77;
  if (((int (*)(int*))find("cuDeviceGetCount"))(&count) != 0 || count == 0) return 77;
  CALL(cuDeviceGet, (int*, int), &device, 0);
  CALL(cuDevicePrimaryCtxRetain, (void**, int), &context, device);
  CALL(cuCtxPushCurrent_v2, (void*), context);
  g_second = context;
  return 0;
}

void gpu_use_second(void) {
  int device = 0, count = 0;
  CALL(cuDeviceGetCount, (int*), &count);
  if (count < 2) return;
  CALL(cuDeviceGet, (int*, int), &device, 1);
  CALL(cuDevicePrimaryCtxRetain, (void**, int), &g_second, device);
}

/* The types below are those of cuda.h. */
struct gpu_location {
  int type, id;
};
struct gpu_properties {
  int type, handle_types;
  struct gpu_location location;
  void* windows;
  unsigned char flags[8];
};
struct gpu_access {
  struct gpu_location location;
  int flags;
};
enum { PINNED = 1, ON_DEVICE = 1, READ_AND_WRITE = 3, MOST_VIRTUAL = 64 };
static struct {
  pointer memory;
  size_t page, pages;
} g_virtual[MOST_VIRTUAL];

static pointer take_virtual(size_t bytes) {
  struct gpu_properties about = {.type = PINNED};
  about.location.type = ON_DEVICE;
  const struct gpu_access access = {about.location, READ_AND_WRITE};
  size_t page = 0;
  int slot = 0;
  CALL(cuMemGetAllocationGranularity, (size_t*, const void*, int), &page, &about, 0);
  const size_t pages = (bytes + page - 1) / page;
  while (slot < MOST_VIRTUAL && g_virtual[slot].pages != 0) ++slot;
  if (slot == MOST_VIRTUAL) call("gpu_take", 1);
  pointer memory = 0;
  CALL(cuMemAddressReserve, (pointer*, size_t, size_t, pointer, unsigned long long), &memory,
       pages * page, 0, 0, 0);
  for (size_t i = 0; i < pages; ++i) {
    unsigned long long handle = 0;
    CALL(cuMemCreate, (unsigned long long*, size_t, const void*, unsigned long long), &handle, page,
         &about, 0);
    CALL(cuMemMap, (pointer, size_t, size_t, unsigned long long, unsigned long long),
         memory + i * page, page, 0, handle, 0);
    CALL(cuMemRelease, (unsigned long long), handle);
  }
  CALL(cuMemSetAccess, (pointer, size_t, const void*, size_t), memory, pages * page, &access, 1);
  g_virtual[slot].memory = memory;
  g_virtual[slot].page = page;
  g_virtual[slot].pages = pages;
  return memory;
}

static void give_back_virtual(pointer memory) {
  int slot = 0;
  while (slot < MOST_VIRTUAL && g_virtual[slot].memory != memory) ++slot;
  if (slot == MOST_VIRTUAL) call("gpu_give_back", 1);
  const size_t page = g_virtual[slot].page, pages = g_virtual[slot].pages;
  for (size_t i = 0; i < pages; ++i) CALL(cuMemUnmap, (pointer, size_t), memory + i * page, page);
  CALL(cuMemAddressFree, (pointer, size_t), memory, pages * page);
  g_virtual[slot].memory = 0;
  g_virtual[slot].pages = 0;
}

void* gpu_take(enum gpu_memory kind, size_t bytes) {
  pointer memory = 0;
  void *pinned = NULL, *popped = NULL;
  if (bytes == 0) bytes = 1;
  switch (kind) {
    case GPU_SECOND:
      CALL(cuCtxPushCurrent_v2, (void*), g_second);
      CALL(cuMemAlloc_v2, (pointer*, size_t), &memory, bytes);
      CALL(cuCtxPopCurrent_v2, (void**), &popped);
      return (void*)(size_t)memory;
    case GPU_DEVICE:
      CALL(cuMemAlloc_v2, (pointer*, size_t), &memory, bytes);
      return (void*)(size_t)memory;
    case GPU_POOL:
      CALL(cuMemAllocAsync, (pointer*, size_t, void*), &memory, bytes, NULL);
      gpu_finish();
      return (void*)(size_t)memory;
    case GPU_VIRTUAL:
      return (void*)(size_t)take_virtual(bytes);
    case GPU_MANAGED:
      CALL(cuMemAllocManaged, (pointer*, size_t, unsigned), &memory, bytes, 1);
      return (void*)(size_t)memory;
    case GPU_PINNED:
      CALL(cuMemHostAlloc, (void**, size_t, unsigned), &pinned, bytes, 0);
      return pinned;
    default:
      return malloc(bytes);
  }
}

void gpu_give_back(enum gpu_memory kind, void* memory) {
  if (kind == GPU_HOST)
    free(memory);
  else if (kind == GPU_PINNED)
    CALL(cuMemFreeHost, (void*), memory);
  else if (kind == GPU_VIRTUAL)
    give_back_virtual((pointer)(size_t)memory);
  else
    CALL(cuMemFree_v2, (pointer), (pointer)(size_t)memory);
}

static int on_device(enum gpu_memory kind) {
  return kind == GPU_DEVICE || kind == GPU_POOL || kind == GPU_SECOND || kind == GPU_VIRTUAL;
}

void gpu_copy(void* to, enum gpu_memory to_kind, const void* from, enum gpu_memory from_kind,
              size_t bytes) {
  if (on_device(to_kind) && on_device(from_kind)) {
    gpu_queue_copy(to, from, bytes);
    gpu_finish();
  } else if (on_device(to_kind)) {
    CALL(cuMemcpyHtoD_v2, (pointer, const void*, size_t), (pointer)(size_t)to, from, bytes);
  } else if (on_device(from_kind)) {
    CALL(cuMemcpyDtoH_v2, (void*, pointer, size_t), to, (pointer)(size_t)from, bytes);
  } else {
    memcpy(to, from, bytes);
  }
}

void gpu_queue_copy(void* to, const void* from, size_t bytes) {
  CALL(cuMemcpyDtoDAsync_v2, (pointer, pointer, size_t, void*), (pointer)(size_t)to,
       (pointer)(size_t)from, bytes, NULL);
}

void gpu_finish(void) {
  call("cuCtxSynchronize", ((int (*)(void))find("cuCtxSynchronize"))());
}

size_t gpu_free_memory(void) {
  size_t left = 0, all = 0;
  CALL(cuMemGetInfo_v2, (size_t*, size_t*), &left, &all);
  return left;
}

void* gpu_current(void) {
  void* context = NULL;
  CALL(cuCtxGetCurrent, (void**), &context);
  return context;
}

void gpu_set_current(void* context) {
  CALL(cuCtxSetCurrent, (void*), context);
}
