// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_HD begins the definition of a function that the host and CUDA share.
#pragma once

#if defined(__CUDACC__)
#define SLIMPI_HD static __host__ __device__ __forceinline__
#else
// Internal linkage, because this code is compiled once for each instruction set, and the linker
// must not merge the copies.
#define SLIMPI_HD static inline __attribute__((always_inline, unused))
#endif
