// SPDX-License-Identifier: BSD-3-Clause
// The CUDA contexts that the program's memory lies in. slimpi works in these and makes none of its
// own: a device that the program does not use never sees it.
#pragma once
#include <atomic>

#include "device/cuda/driver.h"
#include "kernels/cuda/arguments.h"

namespace slimpi::device::cuda {

enum class Kernel {
#define SLIMPI_CUDA_NAME(module, name, arguments) name,
  SLIMPI_CUDA_KERNELS(SLIMPI_CUDA_NAME)
#undef SLIMPI_CUDA_NAME
      count
};

// A context and what slimpi keeps for it; never goes away.
struct Context {
  CUcontext handle = nullptr;
  int numa_node = -1;               // of the GPU; -1: not known, or no difference
  std::atomic<bool> loaded{false};  // kernels
  CUfunction kernels[int(Kernel::count)] = {};
};

// Makes a context current for its lifetime, and the caller's again after it. To be asked first
// whether that has worked.
class Current {
 public:
  explicit Current(CUcontext context);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  Status status() const { return status_; }

 private:
  Status status_;
};

// What the driver says of a pointer.
struct Attributes {
  CUmemorytype type = CUmemorytype(0);  // 0: ordinary memory that CUDA has never heard of
  unsigned managed = 0;
  int device = -1;
  CUcontext context = nullptr;  // null for memory of pools and of virtual memory management
};

// False if the driver cannot say, as where the program has not initialized it.
bool attributes_of(const void* pointer, Attributes* attributes);

// The PCI bus id of the GPU of this memory.
Status bus_id(const void* like, char* text, std::size_t bytes);

// The context to work on this memory in.
Status context_of(const void* pointer, Context** context);

// Loads the kernels into the context, which is current, unless it has them. Without them memory can
// still be copied.
Status load_kernels(Context& context);

}  // namespace slimpi::device::cuda
