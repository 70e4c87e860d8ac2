/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes GPU memory in test programs, through CUDA's driver. The driver is opened at run time, so
 * that these programs build anywhere and run on a machine with a GPU or with the fake driver in
 * LD_LIBRARY_PATH. */
#ifndef SLIMPI_TESTS_HELPER_GPU_H
#define SLIMPI_TESTS_HELPER_GPU_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* GPU_SECOND is memory of the second GPU or, if there is none, of the first. GPU_VIRTUAL is taken
 * by virtual memory management, as PyTorch does with expandable segments. Its mappings have the
 * shortest length that the driver allows, so that a buffer may span several. */
enum gpu_memory {
  GPU_HOST,
  GPU_DEVICE,
  GPU_POOL,
  GPU_MANAGED,
  GPU_PINNED,
  GPU_SECOND,
  GPU_VIRTUAL
};

/* Loads the driver and makes the first GPU's primary context current. Returns 0; or 77, the exit
 * status of a skipped test, if there is no driver or no GPU. */
int gpu_open(void);

/* Opens the second GPU, if there is one, so that GPU_SECOND can be taken. */
void gpu_use_second(void);

/* If the driver fails, the functions below end the program with a line on stderr. */
void* gpu_take(enum gpu_memory kind, size_t bytes);
void gpu_give_back(enum gpu_memory kind, void* memory);

/* Copies between memory of any kind. The copy is done on return. */
void gpu_copy(void* to, enum gpu_memory to_kind, const void* from, enum gpu_memory from_kind,
              size_t bytes);

/* Queues a copy between GPU memory on the default stream, and does not wait. */
void gpu_queue_copy(void* to, const void* from, size_t bytes);

/* Waits until the GPU has done all its work. */
void gpu_finish(void);

/* Returns how many bytes of GPU memory are free. */
size_t gpu_free_memory(void);

/* Returns the context that is current on this thread; null if there is none. */
void* gpu_current(void);
/* Makes the context current on this thread; with null, none is current. */
void gpu_set_current(void* context);

/* Returns the driver's function of this name; null if it has none. */
void* gpu_function(const char* name);

#ifdef __cplusplus
}
#endif
#endif
