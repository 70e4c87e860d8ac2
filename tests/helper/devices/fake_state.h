// SPDX-License-Identifier: BSD-3-Clause
// The state of the fake driver: its contexts, streams, events and memory.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/helper/devices/protected_stream.h"

// The objects that CUDA's handles point to.
struct CUctx_st {
  int device = 0;
  int retained = 0;
  unsigned long long id = 0;                 // a reset gives the same handle another id
  slimpi::device::Stream* legacy = nullptr;  // the default stream
};
struct CUstream_st {
  slimpi::device::Stream* queue = nullptr;
  int device = 0;
  unsigned long long context = 0;  // the id
  bool blocking = false;           // waits for the default stream
};
struct CUevent_st {
  slimpi::device::Stream* queue = nullptr;  // null: never recorded
  std::uint64_t number = 0;
  int device = 0;
  unsigned long long context = 0;
};
namespace slimpi::test {
struct EmulatedKernel;
}
struct CUfunc_st {
  const slimpi::test::EmulatedKernel* kernel = nullptr;
  unsigned long long context = 0;
};

namespace slimpi::test {

constexpr int kFakeDevices = 2;

struct Allocation {
  std::size_t bytes;
  CUmemorytype type;
  bool managed;
  int device;
  CUcontext context;  // null for memory of a pool
  unsigned long long number;
  bool registered = false;  // host memory that the program itself registered by cuMemHostRegister
  bool mapped = false;      // pinned memory that kernels may use, by CU_MEMHOSTALLOC_DEVICEMAP
};

struct Failure {
  int result, calls;
  bool lost;
};

struct FakeDriver {
  bool initialized = false;
  int process = 0;  // the one that initialized
  CUctx_st primary[kFakeDevices];
  std::map<std::uintptr_t, Allocation> memory;
  std::map<std::string, Failure> failures;
  int streams = 0, events = 0;
  unsigned long allocations = 0, attributes = 0, pageable = 0;
  unsigned long long contexts = 0;  // ids given
  bool capturing = false, capture_ended = false;
  bool capturing_blocking = false;  // a stream that waits for the default stream
  std::map<std::string, unsigned long> calls;
};

// The state of the fake driver. Callers hold protected_mutex().
FakeDriver& fake_driver();

// The contexts that this thread has pushed; the last is current.
std::vector<CUcontext>& context_stack();
CUcontext current_context();

// Returns the queue for a stream handle of any kind, in the current context.
slimpi::device::Stream* queue_of(CUstream stream);

// Returns the number of the PCI bus that a device is on.
int fake_bus(int device);

// Frees the device's memory and the memory that was pinned for it.
void free_all(int device);

// Returns the allocation that contains the address; null if the driver does not know the address.
const Allocation* find_allocation(std::uintptr_t address);

// Returns whether kernels and writes of streams may use this memory. `mapped`: whether host memory
// that is mapped for kernels counts, too.
bool is_for_kernels(const void* memory, bool mapped);

// Ends the program if the handle belongs to a context that a reset has destroyed.
void expect_alive(int device, unsigned long long context, const char* function);

// Returns the mode that decides how captures of other threads affect this thread.
CUstreamCaptureMode& capture_mode();

// Called by functions that are not allowed while another thread captures. If there is a capture,
// ends it and returns true, and the function must then fail.
bool refused_by_capture();

// Ends a child process that uses a driver which its parent has initialized.
void expect_own_process();

// Returns the error that a test wants this call of `function` to return; CUDA_SUCCESS if the call
// shall do its work.
CUresult fake_failure(const char* function);

}  // namespace slimpi::test

// The first line of each function of the fake driver: takes the lock, returns a failure that a test
// wants, and checks that cuInit() was called.
#define FAKE_ENTER(function)                                                             \
  const std::lock_guard lock(slimpi::test::protected_mutex());                           \
  static unsigned long& slimpi_calls = slimpi::test::fake_driver().calls[#function];     \
  ++slimpi_calls;                                                                        \
  if (const CUresult told = slimpi::test::fake_failure(#function); told != CUDA_SUCCESS) \
    return told;                                                                         \
  if (!slimpi::test::fake_driver().initialized) return CUDA_ERROR_NOT_INITIALIZED;       \
  slimpi::test::expect_own_process()

// The first line of a function that is not allowed while another thread captures.
#define FAKE_ENTER_UNSAFE(function) \
  FAKE_ENTER(function);             \
  if (slimpi::test::refused_by_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
