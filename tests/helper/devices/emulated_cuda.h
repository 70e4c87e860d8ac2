// SPDX-License-Identifier: BSD-3-Clause
// Emulates CUDA's language on a CPU, for the kernels of kernels/cuda: the compiler's command line
// includes this file before each .cu file. Every thread of a block is a fiber. If threads act
// together, in a barrier or a reduction over a warp, each fiber waits until all have arrived. The
// program is ended where a GPU's behaviour would be undefined: if some threads of a block miss a
// barrier, or if lanes of a warp meet at different places. Blocks run one after the other, in turns
// with ascending and descending order of their threads, so that a missing barrier shows.
#pragma once
#include <cstddef>
#include <cstdint>

namespace slimpi::test {

struct EmulatedKernel {
  EmulatedKernel(const char* name, std::size_t bytes, void (*run)(const void* arguments));

  const char* name;
  std::size_t bytes;  // of its structure of arguments
  void (*run)(const void* arguments);
  const EmulatedKernel* next;
};

// Returns the kernel of this name; null if there is none.
const EmulatedKernel* find_emulated(const char* name);

// Runs all blocks of a launch. A process can run one launch at a time.
void run_emulated(const EmulatedKernel& kernel, unsigned blocks, unsigned threads,
                  const void* arguments);

// Only kernels call the functions below.
struct EmulatedIndex {
  unsigned x;
};
extern EmulatedIndex g_emulated_thread, g_emulated_block;
void meet_block();
void meet_warp();
std::int32_t reduce_warp(std::int32_t value, bool greatest);
std::uint32_t reduce_warp(std::uint32_t value, bool greatest);
std::uint32_t add_warp(std::uint32_t value);
// Returns the value of lane source(own lane, own number); if there is no such lane, the own value.
std::uint32_t shuffle_warp(std::uint32_t value, unsigned (*source)(unsigned lane, unsigned number),
                           unsigned number);

}  // namespace slimpi::test

#define SLIMPI_DEVICE inline
#define SLIMPI_DEVICE_RARE inline
#define SLIMPI_UNROLL
#define SLIMPI_ROLLED
#define SLIMPI_KERNEL(name, Arguments, blocks, body)           \
  static const ::slimpi::test::EmulatedKernel emulated_##name{ \
      "slimpi_" #name, sizeof(Arguments),                      \
      [](const void* arguments) { body(*static_cast<const Arguments*>(arguments)); }};

#define __shared__ static
#define threadIdx (::slimpi::test::g_emulated_thread)
#define blockIdx (::slimpi::test::g_emulated_block)

inline void __syncthreads() {
  slimpi::test::meet_block();
}
inline void __syncwarp() {
  slimpi::test::meet_warp();
}
template <typename Number>
Number __reduce_max_sync(unsigned, Number value) {
  return slimpi::test::reduce_warp(value, true);
}
template <typename Number>
Number __reduce_min_sync(unsigned, Number value) {
  return slimpi::test::reduce_warp(value, false);
}
inline std::uint32_t __reduce_add_sync(unsigned, std::uint32_t value) {
  return slimpi::test::add_warp(value);
}
inline std::uint32_t __shfl_up_sync(unsigned, std::uint32_t value, unsigned distance) {
  return slimpi::test::shuffle_warp(
      value, [](unsigned lane, unsigned number) { return lane - number; }, distance);
}
inline std::uint32_t __shfl_xor_sync(unsigned, std::uint32_t value, unsigned mask) {
  return slimpi::test::shuffle_warp(
      value, [](unsigned lane, unsigned number) { return lane ^ number; }, mask);
}
inline int __any_sync(unsigned, bool value) {
  return slimpi::test::reduce_warp(std::int32_t(value), true);
}
template <typename Number>
void atomicMax(Number* at, Number value) {
  if (*at < value) *at = value;
}
template <typename Number>
void atomicMin(Number* at, Number value) {
  if (value < *at) *at = value;
}
