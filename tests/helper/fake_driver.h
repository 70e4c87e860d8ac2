/* SPDX-License-Identifier: BSD-3-Clause */
/* A CUDA driver for machines without a GPU: a libcuda.so.1 with the functions that slimpi and its
 * tests use. Its two GPUs' memory is the protected device's, which dies when the program or MPI
 * touch it; streams do their work late, a transfer at each question; kernels are those of
 * kernels/cuda, run as emulated_cuda.h says. The processes of a machine share the two GPUs, or,
 * with FAKE_GPUS=own, each rank has two of its own. What follows is only in the fake driver:
 * programs look it up by name.
 */
#ifndef SLIMPI_TESTS_HELPER_FAKE_DRIVER_H
#define SLIMPI_TESTS_HELPER_FAKE_DRIVER_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#define SLIMPI_FAKE __attribute__((visibility("default")))

/* The function with this name fails with this CUresult at its next call but `calls`, and at every
 * one after that if `lost`. A null name ends all failing. */
SLIMPI_FAKE void slimpi_fake_fail(const char* function, int result, int calls, int lost);

/* Another thread of the program begins to capture work in global mode, or ends that; and whether
 * something since then has ended the capture. cuDevicePrimaryCtxReset_v2 is a function of the
 * driver like others; what is used of a GPU that was reset ends the program. */
SLIMPI_FAKE void slimpi_fake_capture(int begin);
SLIMPI_FAKE int slimpi_fake_capture_ended(void);

/* Calls of this function of the driver; of all for null. */
SLIMPI_FAKE unsigned long slimpi_fake_calls(const char* function);

/* Attributes of pointers that were asked for. */
SLIMPI_FAKE unsigned long slimpi_fake_attributes(void);

/* Copies to or from host memory that is not pinned: those are done before the driver returns,
 * behind all that was queued on their stream. And the bytes of host memory that is registered. */
SLIMPI_FAKE unsigned long slimpi_fake_pageable(void);
SLIMPI_FAKE size_t slimpi_fake_registered(void);

/* GPU and pinned memory in use, in bytes; streams, events and contexts in use; kernels started. */
SLIMPI_FAKE size_t slimpi_fake_memory(void);
SLIMPI_FAKE int slimpi_fake_streams(void);
SLIMPI_FAKE int slimpi_fake_events(void);
SLIMPI_FAKE int slimpi_fake_contexts(int device);
SLIMPI_FAKE unsigned long slimpi_fake_kernels(void);

/* Communicators of NCCL in use, and the sends and receives so far. */
SLIMPI_FAKE int slimpi_fake_communicators(void);
SLIMPI_FAKE unsigned long slimpi_fake_pieces(void);

/* How often memory was taken, and the memory policy (of get_mempolicy) when it was last pinned. */
SLIMPI_FAKE unsigned long slimpi_fake_allocations(void);
SLIMPI_FAKE int slimpi_fake_policy(void);

/* The priority of the stream that was made last. */
SLIMPI_FAKE int slimpi_fake_priority(void);

#ifdef __cplusplus
}
#endif
#endif
