// SPDX-License-Identifier: BSD-3-Clause
// The macros that define kernels and device functions. nvcc compiles this directory for GPUs. The
// host's compiler also compiles it, for tests that define these macros and CUDA's own names
// themselves (tests/helper/devices/emulated_cuda.h).
#pragma once
#include "kernels/cuda/arguments.h"

#if defined(__CUDACC__)
// Defines a device function, which must have external linkage: nvcc puts the path of the file into
// other names, and then builds in different directories have different bytes.
#define SLIMPI_DEVICE __device__ __forceinline__
// Defines a function that is not inlined, so that rare code takes no registers from common code.
#define SLIMPI_DEVICE_RARE inline __device__ __noinline__
#define SLIMPI_UNROLL _Pragma("unroll")
#define SLIMPI_ROLLED _Pragma("unroll 1")
// Defines kernel slimpi_<name>, which calls body(arguments). The compiler limits the registers so
// that `blocks` blocks fit on a multiprocessor, since enough blocks hide the latency of memory.
#define SLIMPI_KERNEL(name, Arguments, blocks, body)               \
  extern "C" __global__ void __launch_bounds__(kThreads, blocks)   \
      slimpi_##name(const __grid_constant__ Arguments arguments) { \
    body(arguments);                                               \
  }
#endif

namespace slimpi::kernels::cuda {

// Prefetches the cache line at `data`. The address may be invalid.
SLIMPI_DEVICE void prefetch(const void* data) {
#if defined(__CUDA_ARCH__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(data));
#else
  (void)data;
#endif
}

constexpr unsigned kAllLanes = 0xffffffff;

}  // namespace slimpi::kernels::cuda
