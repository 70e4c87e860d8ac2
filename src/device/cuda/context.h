// SPDX-License-Identifier: BSD-3-Clause
// The CUDA contexts that the program's memory belongs to. slimpi works in these and creates none,
// so it never uses a GPU that the program does not use.
#pragma once
#include <atomic>

#include "device/cuda/driver.h"
#include "device/device.h"
#include "kernels/cuda/arguments.h"

namespace slimpi::device::cuda {

enum class Kernel {
#define SLIMPI_CUDA_NAME(module, name, arguments) name,
  SLIMPI_CUDA_KERNELS(SLIMPI_CUDA_NAME)
#undef SLIMPI_CUDA_NAME
      count
};

// A context with slimpi's data for it; never freed. After a reset of the GPU, the driver may reuse
// the handle for a new context, which has none of the objects of the old one. Only the id tells
// these contexts apart.
struct Context {
  CUcontext handle = nullptr;
  std::uint64_t id = 0;             // 0: the driver is too old to have ids
  int numa_node = -1;               // of the GPU; -1: unknown, or all nodes are equally near
  std::atomic<bool> loaded{false};  // whether the kernels are loaded
  CUfunction kernels[int(Kernel::count)] = {};
};

// Returns whether the context still exists; always true if the driver has no ids. If it does not,
// its streams, events, modules and memory are gone, and slimpi must not pass them to the driver.
bool exists(const Context& context);

// While a Current exists, its context is current; afterwards the caller's context is current again.
// Check status() first. Use::anything protects slimpi and the program from each other if a thread
// of the program captures a CUDA graph: slimpi's calls do not fail because of the capture, and do
// not end it. Use::queues saves the time of this protection in code that only queues work on
// slimpi's own streams, which is the code that runs most often.
class Current {
 public:
  enum Use { anything, queues };
  explicit Current(CUcontext context, Use use = anything);
  // Find the context to work in, given a location or memory that the driver knows.
  explicit Current(const Location& location);
  explicit Current(const void* memory);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  Status status() const { return status_; }
  // Returns the CUDA context that the constructor has found for its argument, if status() is ok.
  Context& context() const { return *context_; }

 private:
  void enter(CUcontext context);

  Context* context_ = nullptr;
  Status status_ = Status::ok;
  const Use use_ = anything;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

// The driver's attributes of a pointer.
struct Attributes {
  CUmemorytype type = CUmemorytype(0);  // 0: ordinary memory, unknown to CUDA
  unsigned managed = 0;
  int device = -1;
  CUcontext context = nullptr;  // null for memory of pools and of virtual memory management
};

// Gets the attributes of a pointer. Returns false if the driver cannot answer, for instance because
// the program has not initialized it.
bool attributes_of(const void* pointer, Attributes* attributes);

// Returns whether the driver has allocated, pinned or opened the memory. False after a GPU reset.
bool is_known(const void* memory);

// Writes the PCI bus id of the GPU at this location to `text`.
Status bus_id(const Location& location, char* text, std::size_t bytes);

// Returns true for GPU memory, managed memory, and memory of pools and of virtual memory
// management, and sets the location's ordinal, context and generation. Returns false for all other
// memory, even for pinned and mapped host memory, which MPI and the host's kernels use directly.
bool locate(const void* pointer, Location* location);

// Loads the kernels into the context, if they are not loaded yet. The context need not be current.
Status load_kernels(Context& context);

}  // namespace slimpi::device::cuda
