// SPDX-License-Identifier: BSD-3-Clause
// Virtual memory management of the fake driver, as PyTorch's expandable segments use it. Pages of
// physical memory are mapped into a range of addresses, and unmapped, one by one. A buffer may span
// several mappings. This memory belongs to no context.
#include <mutex>

#include "tests/helper/devices/fake_driver.h"
#include "tests/helper/devices/fake_state.h"
#include "tests/helper/devices/protected_memory.h"

using namespace slimpi::test;

namespace {
constexpr std::size_t kPage = 4096;
}

extern "C" {

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  FAKE_ENTER(cuMemGetAllocationGranularity);
  *bytes = kPage;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* memory, size_t bytes, size_t, CUdeviceptr,
                             unsigned long long) {
  FAKE_ENTER(cuMemAddressReserve);
  if (bytes % kPage != 0) return CUDA_ERROR_INVALID_VALUE;
  *memory = reinterpret_cast<CUdeviceptr>(protected_take(bytes));
  return *memory != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemAddressFree(CUdeviceptr memory, size_t) {
  FAKE_ENTER(cuMemAddressFree);
  if (find_allocation(memory) != nullptr) die("addresses are freed that are mapped");
  protected_give_back(reinterpret_cast<void*>(memory));
  return CUDA_SUCCESS;
}
// The handle only records on which GPU the memory is; the pages are those of the addresses.
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t, const CUmemAllocationProp* about,
                     unsigned long long) {
  FAKE_ENTER_UNSAFE(cuMemCreate);
  *handle = CUmemGenericAllocationHandle(about->location.id + 1);
  return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle) {
  FAKE_ENTER(cuMemRelease);
  return CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr memory, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
                  unsigned long long) {
  FAKE_ENTER(cuMemMap);
  if (find_allocation(memory) != nullptr) return CUDA_ERROR_INVALID_VALUE;
  fake_driver().memory[memory] = {bytes,   CU_MEMORYTYPE_DEVICE,       false, int(handle) - 1,
                                  nullptr, ++fake_driver().allocations};
  return CUDA_SUCCESS;
}
CUresult cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
  FAKE_ENTER(cuMemSetAccess);
  return CUDA_SUCCESS;
}
// The caller must have waited for all work that uses the memory, as PyTorch's allocator does for
// cudaFree.
CUresult cuMemUnmap(CUdeviceptr memory, size_t bytes) {
  FAKE_ENTER_UNSAFE(cuMemUnmap);
  ProtectedStream::run_all();
  const Allocation* const found = find_allocation(memory);
  if (found == nullptr || found->bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  fake_driver().memory.erase(memory);
  return CUDA_SUCCESS;
}

}  // extern "C"
