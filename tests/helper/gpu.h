/* SPDX-License-Identifier: BSD-3-Clause */
/* GPU memory for test programs, as a program that uses CUDA's driver takes it. The driver is opened
 * at run time, so that these programs build anywhere and run on a machine with a GPU or with the
 * fake driver in LD_LIBRARY_PATH. */
#ifndef SLIMPI_TESTS_HELPER_GPU_H
#define SLIMPI_TESTS_HELPER_GPU_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* GPU_SECOND: of the second GPU, where there is one, else of the first. GPU_VIRTUAL: by virtual
 * memory management, in mappings of the shortest length that the driver has, so that a buffer may
 * lie in several; as PyTorch takes it with expandable segments. */
enum gpu_memory {
  GPU_HOST,
  GPU_DEVICE,
  GPU_POOL,
  GPU_MANAGED,
  GPU_PINNED,
  GPU_SECOND,
  GPU_VIRTUAL
};

/* Loads the driver and makes the first GPU's primary context current. Returns 0, or 77 where there
 * is no driver or no GPU, which is the exit status of a skipped test. */
int gpu_open(void);

/* Opens the second GPU, if there is one, for GPU_SECOND. */
void gpu_use_second(void);

/* The functions below end the program with a line on stderr when the driver fails. */
void* gpu_take(enum gpu_memory kind, size_t bytes);
void gpu_give_back(enum gpu_memory kind, void* memory);

/* Copies between memory of any kind; done on return. */
void gpu_copy(void* to, enum gpu_memory to_kind, const void* from, enum gpu_memory from_kind,
              size_t bytes);

/* Queues a copy between GPU memory on the default stream and returns. */
void gpu_queue_copy(void* to, const void* from, size_t bytes);

/* Waits for all of the GPU's work. */
void gpu_finish(void);

/* Free bytes of GPU memory. */
size_t gpu_free_memory(void);

/* The context that is current on this thread; null for none. */
void* gpu_current(void);
/* Makes the context current on this thread; null: no context is. */
void gpu_set_current(void* context);

/* Returns a function of the driver, or null if it has none of this name. */
void* gpu_function(const char* name);

#ifdef __cplusplus
}
#endif
#endif
