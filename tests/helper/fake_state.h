// SPDX-License-Identifier: BSD-3-Clause
// What the fake driver driver knows: its contexts, streams, events and memory.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/helper/protected_stream.h"

// What CUDA's handles point to.
struct CUctx_st {
  int device = 0;
  int retained = 0;
  slimpi::device::Stream* legacy = nullptr;  // the default stream
};
struct CUstream_st {
  slimpi::device::Stream* queue = nullptr;
  int device = 0;
};
struct CUevent_st {
  slimpi::device::Stream* queue = nullptr;  // null: never recorded
  std::uint64_t number = 0;
};

namespace slimpi::test {

constexpr int kStandinDevices = 2;

struct Allocation {
  std::size_t bytes;
  CUmemorytype type;
  bool managed;
  int device;
  CUcontext context;  // null for memory of a pool
};

struct Failure {
  int result, calls;
  bool lost;
};

struct FakeDriver {
  bool initialized = false;
  CUctx_st primary[kStandinDevices];
  std::map<std::uintptr_t, Allocation> memory;
  std::map<std::string, Failure> failures;
  int streams = 0, events = 0, policy = -1;
  unsigned long kernels = 0, allocations = 0;
};

// Under protected_mutex().
FakeDriver& fake_driver();

// The contexts that this thread has pushed; the last is current.
std::vector<CUcontext>& context_stack();
CUcontext current_context();

// The queue behind a stream handle of any kind, in the current context.
slimpi::device::Stream* queue_of(CUstream stream);

// The PCI bus that a device is on.
int fake_bus(int device);

// Null if the driver has not heard of this memory.
const Allocation* find_allocation(std::uintptr_t address);

// What a call of `function` is to return in place of doing its work; CUDA_SUCCESS: its work.
CUresult fake_failure(const char* function);

}  // namespace slimpi::test

// Opens every function of the fake driver: it takes the lock, may fail as told, and needs cuInit().
#define FAKE_ENTER(function)                                                             \
  const std::lock_guard lock(slimpi::test::protected_mutex());                           \
  if (const CUresult told = slimpi::test::fake_failure(#function); told != CUDA_SUCCESS) \
    return told;                                                                         \
  if (!slimpi::test::fake_driver().initialized) return CUDA_ERROR_NOT_INITIALIZED
