// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/functions.h"

#include "device/cuda/context.h"
#include "device/cuda/numa.h"

namespace slimpi::device::cuda {

Status allocate(const Location& location, std::size_t bytes, Place place, void** memory) {
  const Current current(location);
  SLIMPI_TRY(current.status());
  const std::size_t size = bytes == 0 ? 1 : bytes;
  const std::string amount = std::to_string(bytes) + " bytes of ";
  if (place == Place::staging) {
    const Preferred preferred(current.context().numa_node);
    return check(
        driver().cuMemHostAlloc(memory, size, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
        (amount + "pinned memory").c_str());
  }
  // Load the kernels first: if that fails, slimpi cannot use the memory, and MPI can still run the
  // call.
  SLIMPI_TRY(load_kernels(current.context()));
  CUdeviceptr found = 0;
  SLIMPI_TRY(check(driver().cuMemAlloc_v2(&found, size), (amount + "GPU memory").c_str()));
  *memory = reinterpret_cast<void*>(found);
  return Status::ok;
}

// Ignores failures, because there is no caller to report them to.
void release(void* memory, Place place) {
  if (!is_known(memory)) return;
  const Current current(memory);
  if (current.status() != Status::ok) return;
  if (place == Place::staging)
    (void)driver().cuMemFreeHost(memory);
  else
    (void)driver().cuMemFree_v2(reinterpret_cast<CUdeviceptr>(memory));
}

// Pins host memory for all GPUs of this process.
Status pin(const Location& location, void* memory, std::size_t bytes) {
  const Current current(location);
  SLIMPI_TRY(current.status());
  const CUresult result = driver().cuMemHostRegister_v2(memory, bytes, CU_MEMHOSTREGISTER_PORTABLE);
  if (result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) return Status::ok;
  return check(result, "pinning host memory");
}

// Ignores failures, because there is no caller to report them to.
void unpin(void* memory) {
  if (!is_known(memory)) return;
  const Current current(memory);
  if (current.status() == Status::ok) (void)driver().cuMemHostUnregister(memory);
}

}  // namespace slimpi::device::cuda
