/* SPDX-License-Identifier: BSD-3-Clause */
/* A CUDA driver for machines without a GPU: a libcuda.so.1 with the functions that slimpi and its
 * tests use. Its two GPUs' memory is the protected device's, which dies when the program or MPI
 * touch it; streams do their work late, a transfer at each question; kernels are those of
 * kernels/cuda, run as emulated_cuda.h says. The processes of a machine share the two GPUs, or,
 * with FAKE_GPUS=own, each rank has two of its own. What follows is only in the fake driver:
 * programs look it up by name, with FIND_FAKE or CALL_FAKE.
 */
#ifndef SLIMPI_TESTS_HELPER_FAKE_DRIVER_H
#define SLIMPI_TESTS_HELPER_FAKE_DRIVER_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#define SLIMPI_FAKE __attribute__((visibility("default")))

/* FIND_FAKE: one of the functions below, or null without the fake driver. CALL_FAKE: what it
 * returns, or 0. Both want tests/helper/gpu.h and an opened driver. */
#define FIND_FAKE(name) ((__typeof__(&slimpi_fake_##name))gpu_function("slimpi_fake_" #name))
#define CALL_FAKE(name, ...) (FIND_FAKE(name) != NULL ? FIND_FAKE(name)(__VA_ARGS__) : 0)

/* Makes the function with this name return the CUresult `result` after `calls` more calls, once, or
 * at every call from then on if `lost`. A null name ends all failures. */
SLIMPI_FAKE void slimpi_fake_fail(const char* function, int result, int calls, int lost);

/* Begins or ends a capture in global mode, as by another thread of the program; 2 begins the
 * capture of a stream that waits for the default stream.
 * slimpi_fake_capture_ended returns whether some call has ended the capture since then. Tests reset
 * a GPU by cuDevicePrimaryCtxReset_v2; a use of what the GPU had before ends the program. */
SLIMPI_FAKE void slimpi_fake_capture(int begin);
SLIMPI_FAKE int slimpi_fake_capture_ended(void);

/* Returns the number of calls of this function of the driver, or of all functions for null. */
SLIMPI_FAKE unsigned long slimpi_fake_calls(const char* function);

/* Returns how many attributes of pointers were asked for. */
SLIMPI_FAKE unsigned long slimpi_fake_attributes(void);

/* slimpi_fake_pageable returns the number of copies to or from host memory that is not pinned. The
 * driver returns from these only when they, and all work before them on their stream, are done.
 * slimpi_fake_registered returns the bytes of host memory that is registered. */
SLIMPI_FAKE unsigned long slimpi_fake_pageable(void);
SLIMPI_FAKE size_t slimpi_fake_registered(void);

/* GPU and pinned memory in use, in bytes; streams, events and contexts in use. */
SLIMPI_FAKE size_t slimpi_fake_memory(void);
SLIMPI_FAKE int slimpi_fake_streams(void);
SLIMPI_FAKE int slimpi_fake_events(void);
SLIMPI_FAKE int slimpi_fake_contexts(int device);

/* Communicators of NCCL in use, and the sends and receives so far. */
SLIMPI_FAKE int slimpi_fake_communicators(void);
SLIMPI_FAKE unsigned long slimpi_fake_pieces(void);

/* How often memory was allocated. */
SLIMPI_FAKE unsigned long slimpi_fake_allocations(void);

/* The priority of the stream that was made last. */
SLIMPI_FAKE int slimpi_fake_priority(void);

#ifdef __cplusplus
}
#endif
#endif
