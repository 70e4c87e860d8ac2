/* SPDX-License-Identifier: BSD-3-Clause */
/* A CUDA driver for machines without a GPU: a libcuda.so.1 with the functions that slimpi and its
 * tests use. Its two GPUs' memory is the guarded device's, which dies when the program or MPI touch
 * it; streams do their work late, a piece at each question; kernels are those of kernels/cuda, run
 * by emulated_cuda.h. The processes of a machine share the two GPUs, or, with STANDIN_GPUS=own,
 * each rank has two of its own. What follows is only in the stand-in: programs look it up by name.
 */
#ifndef SLIMPI_TESTS_HELPER_STANDIN_DRIVER_H
#define SLIMPI_TESTS_HELPER_STANDIN_DRIVER_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#define SLIMPI_STANDIN __attribute__((visibility("default")))

/* The function with this name fails with this CUresult at its next call but `calls`, and at every
 * one after that if `lost`. A null name ends all failing. */
SLIMPI_STANDIN void slimpi_standin_fail(const char* function, int result, int calls, int lost);

/* GPU and pinned memory in use, in bytes; streams, events and contexts in use; kernels started. */
SLIMPI_STANDIN size_t slimpi_standin_memory(void);
SLIMPI_STANDIN int slimpi_standin_streams(void);
SLIMPI_STANDIN int slimpi_standin_events(void);
SLIMPI_STANDIN int slimpi_standin_contexts(int device);
SLIMPI_STANDIN unsigned long slimpi_standin_kernels(void);

/* Communicators of NCCL in use, and the sends and receives so far. */
SLIMPI_STANDIN int slimpi_standin_communicators(void);
SLIMPI_STANDIN unsigned long slimpi_standin_pieces(void);

/* How often memory was taken, and the memory policy (of get_mempolicy) when it was last pinned. */
SLIMPI_STANDIN unsigned long slimpi_standin_allocations(void);
SLIMPI_STANDIN int slimpi_standin_policy(void);

#ifdef __cplusplus
}
#endif
#endif
