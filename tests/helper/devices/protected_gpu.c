/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of gpu.h on the protected device. Every kind of GPU memory is the device's memory,
 * and copies are done immediately. */
#include <stdlib.h>

#include "tests/helper/devices/gpu.h"
#include "tests/helper/devices/protected_device.h"

int gpu_open(void) {
  return 0;
}

void gpu_use_second(void) {}

void* gpu_take(enum gpu_memory kind, size_t bytes) {
  return kind == GPU_HOST ? malloc(bytes) : slimpi_protected_allocate(bytes);
}

void gpu_give_back(enum gpu_memory kind, void* memory) {
  if (kind == GPU_HOST)
    free(memory);
  else
    slimpi_protected_free(memory);
}

void gpu_copy(void* to, enum gpu_memory to_kind, const void* from, enum gpu_memory from_kind,
              size_t bytes) {
  (void)to_kind, (void)from_kind;
  slimpi_protected_write(to, from, bytes);
}

void gpu_queue_copy(void* to, const void* from, size_t bytes) {
  slimpi_protected_write(to, from, bytes);
}

void* gpu_current(void) {
  return NULL;
}

void* gpu_function(const char* name) {
  (void)name;
  return NULL;
}
