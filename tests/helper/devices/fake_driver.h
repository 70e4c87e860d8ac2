/* SPDX-License-Identifier: BSD-3-Clause */
/* A CUDA driver for machines without a GPU: a libcuda.so.1 with the functions that slimpi and its
 * tests use. The memory of its two GPUs is the protected device's, and the program is ended if its
 * own code or MPI touches it. Streams do their work late, one transfer for each query. Kernels are
 * those of kernels/cuda, run as emulated_cuda.h describes. All processes of a machine share the two
 * GPUs; with FAKE_GPUS=own each rank has two of its own. Only the fake driver has the functions
 * below, so programs look them up by name, with FIND_FAKE or CALL_FAKE. */
#ifndef SLIMPI_TESTS_HELPER_FAKE_DRIVER_H
#define SLIMPI_TESTS_HELPER_FAKE_DRIVER_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#define SLIMPI_FAKE __attribute__((visibility("default")))

/* FIND_FAKE returns one of the functions below; null without the fake driver. CALL_FAKE calls the
 * function and returns its result; 0 without the fake driver. Both need
 * tests/helper/devices/gpu.h and an opened driver. */
#define FIND_FAKE(name) ((__typeof__(&slimpi_fake_##name))gpu_function("slimpi_fake_" #name))
#define CALL_FAKE(name, ...) (FIND_FAKE(name) != NULL ? FIND_FAKE(name)(__VA_ARGS__) : 0)

/* Makes a function of the driver return the CUresult `result` after `calls` more calls: once or, if
 * `lost` is not 0, at every later call. A null name ends all failures. */
SLIMPI_FAKE void slimpi_fake_fail(const char* function, int result, int calls, int lost);

/* Begins a capture in global mode, as another thread of the program might, or ends it with 0. 2
 * begins the capture of a stream that waits for the default stream. slimpi_fake_capture_ended
 * returns whether a call has ended the capture since then. To reset a GPU, tests call
 * cuDevicePrimaryCtxReset_v2; a use of anything that the GPU had before the reset ends the
 * program. */
SLIMPI_FAKE void slimpi_fake_capture(int begin);
SLIMPI_FAKE int slimpi_fake_capture_ended(void);

/* Returns how often this function of the driver was called; with null, how often any function
 * was. */
SLIMPI_FAKE unsigned long slimpi_fake_calls(const char* function);

/* Returns how many attributes of pointers the program has asked for. */
SLIMPI_FAKE unsigned long slimpi_fake_attributes(void);

/* slimpi_fake_pageable returns the number of copies to or from host memory that is not pinned. The
 * driver returns from these copies only when they, and all earlier work of their stream, are done.
 * slimpi_fake_registered returns the number of bytes of host memory that are registered. */
SLIMPI_FAKE unsigned long slimpi_fake_pageable(void);
SLIMPI_FAKE size_t slimpi_fake_registered(void);

/* Return how much is in use: bytes of GPU memory and of pinned memory; streams, events and
 * contexts. */
SLIMPI_FAKE size_t slimpi_fake_memory(void);
SLIMPI_FAKE int slimpi_fake_streams(void);
SLIMPI_FAKE int slimpi_fake_events(void);
SLIMPI_FAKE int slimpi_fake_contexts(int device);

/* Return the number of communicators of NCCL in use, and of sends and receives so far. */
SLIMPI_FAKE int slimpi_fake_communicators(void);
SLIMPI_FAKE unsigned long slimpi_fake_pieces(void);

/* Returns how often memory was allocated. */
SLIMPI_FAKE unsigned long slimpi_fake_allocations(void);

/* Returns the priority of the stream that was made last. */
SLIMPI_FAKE int slimpi_fake_priority(void);

#ifdef __cplusplus
}
#endif
#endif
