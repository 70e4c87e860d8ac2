// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_HD begins the definition of a function that the host and CUDA share.
#pragma once

#if defined(__CUDACC__)
#define SLIMPI_HD static __host__ __device__ __forceinline__
#else
// Internal linkage, because each instruction set compiles its own copy, which the linker must not
// merge.
#define SLIMPI_HD static inline __attribute__((always_inline, unused))
#endif
