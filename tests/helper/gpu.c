/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/helper/gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long pointer;

static void *g_library, *g_second;

void* gpu_function(const char* name) {
  return g_library == NULL ? NULL : dlsym(g_library, name);
}

/* The named function, as one that takes what is given. */
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
  else
    CALL(cuMemFree_v2, (pointer), (pointer)(size_t)memory);
}

static int on_device(enum gpu_memory kind) {
  return kind == GPU_DEVICE || kind == GPU_POOL || kind == GPU_SECOND;
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
