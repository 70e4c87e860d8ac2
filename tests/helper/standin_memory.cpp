// SPDX-License-Identifier: BSD-3-Clause
// The memory of the stand-in driver.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <mutex>

#include "tests/helper/guarded_memory.h"
#include "tests/helper/standin_driver.h"
#include "tests/helper/standin_state.h"

namespace slimpi::test {

const Allocation* find_allocation(std::uintptr_t address) {
  auto found = standin().memory.upper_bound(address);
  if (found == standin().memory.begin()) return nullptr;
  --found;
  return address < found->first + found->second.bytes ? &found->second : nullptr;
}

namespace {

CUresult keep(void* memory, std::size_t bytes, CUmemorytype type, bool managed, CUcontext context) {
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const int device = current_context()->device;
  standin().memory[reinterpret_cast<std::uintptr_t>(memory)] = {bytes, type, managed, device,
                                                                context};
  ++standin().allocations;
  return CUDA_SUCCESS;
}

void forget(const void* memory) {
  GuardedStream::run_all();
  if (standin().memory.erase(reinterpret_cast<std::uintptr_t>(memory)) == 0)
    die("memory is freed that the driver has not given");
}

// The copy itself, of memory of any kind.
void copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  auto* const target = reinterpret_cast<void*>(to);
  const auto* const source = reinterpret_cast<const void*>(from);
  const Unlocked unlocked({target, source});
  guarded_copy(target, source, bytes);
}

// Behind what is queued on the default stream, and done on return.
CUresult copy_now(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  GuardedStream& queue = GuardedStream::of(queue_of(nullptr));
  queue.run_until(queue.mark());
  copy(to, from, bytes);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace slimpi::test

using namespace slimpi::test;

extern "C" {

unsigned long slimpi_standin_allocations(void) {
  return standin().allocations;
}
int slimpi_standin_policy(void) {
  return standin().policy;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* names, void** values,
                                CUdeviceptr pointer) {
  STANDIN_ENTER(cuPointerGetAttributes);
  const Allocation* const found = find_allocation(pointer);
  for (unsigned i = 0; i < count; ++i) switch (names[i]) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<CUmemorytype*>(values[i]) = found != nullptr ? found->type : CUmemorytype(0);
        break;
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *static_cast<unsigned*>(values[i]) = found != nullptr && found->managed ? 1 : 0;
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(values[i]) = found != nullptr ? found->device : -2;
        break;
      case CU_POINTER_ATTRIBUTE_CONTEXT:
        *static_cast<CUcontext*>(values[i]) = found != nullptr ? found->context : nullptr;
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* memory, size_t bytes) {
  STANDIN_ENTER(cuMemAlloc_v2);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  void* const taken = guarded_take(bytes);
  *memory = reinterpret_cast<CUdeviceptr>(taken);
  return keep(taken, bytes, CU_MEMORYTYPE_DEVICE, false, current_context());
}
CUresult cuMemAllocAsync(CUdeviceptr* memory, size_t bytes, CUstream) {
  STANDIN_ENTER(cuMemAllocAsync);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  void* const taken = guarded_take(bytes);
  *memory = reinterpret_cast<CUdeviceptr>(taken);
  return keep(taken, bytes, CU_MEMORYTYPE_DEVICE, false, nullptr);
}
CUresult cuMemFree_v2(CUdeviceptr memory) {
  STANDIN_ENTER(cuMemFree_v2);
  auto* const given = reinterpret_cast<void*>(memory);
  const Allocation* const found = find_allocation(memory);
  const bool managed = found != nullptr && found->managed;
  forget(given);
  managed ? staging_give_back(given) : guarded_give_back(given);
  return CUDA_SUCCESS;
}

// The CPU may touch it, so it is none of the guarded device's. A driver may call it memory of the
// host, where it is at home just then.
CUresult cuMemAllocManaged(CUdeviceptr* memory, size_t bytes, unsigned) {
  STANDIN_ENTER(cuMemAllocManaged);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  void* const taken = staging_take(bytes);
  *memory = reinterpret_cast<CUdeviceptr>(taken);
  return keep(taken, bytes, CU_MEMORYTYPE_HOST, true, current_context());
}

CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  STANDIN_ENTER(cuMemHostAlloc);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (syscall(SYS_get_mempolicy, &standin().policy, nullptr, 0, nullptr, 0) != 0)
    standin().policy = -1;
  *memory = staging_take(bytes);
  return keep(*memory, bytes, CU_MEMORYTYPE_HOST, false, current_context());
}
CUresult cuMemFreeHost(void* memory) {
  STANDIN_ENTER(cuMemFreeHost);
  forget(memory);
  staging_give_back(memory);
  return CUDA_SUCCESS;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr memory) {
  STANDIN_ENTER(cuIpcGetMemHandle);
  const Allocation* const found = find_allocation(memory);
  if (found == nullptr || found->managed || found->context == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  GuardedOffer offer{};
  static_assert(sizeof offer <= sizeof *handle);
  guarded_offer(reinterpret_cast<void*>(memory), &offer);
  std::memcpy(handle, &offer, sizeof offer);
  return CUDA_SUCCESS;
}
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* memory, CUipcMemHandle handle, unsigned) {
  STANDIN_ENTER(cuIpcOpenMemHandle_v2);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  GuardedOffer offer{};
  std::memcpy(&offer, &handle, sizeof offer);
  void* const opened = guarded_open(offer);
  *memory = reinterpret_cast<CUdeviceptr>(opened);
  if (opened == nullptr) return CUDA_ERROR_MAP_FAILED;
  return keep(opened, offer.bytes, CU_MEMORYTYPE_DEVICE, false, current_context());
}
CUresult cuIpcCloseMemHandle(CUdeviceptr memory) {
  STANDIN_ENTER(cuIpcCloseMemHandle);
  auto* const opened = reinterpret_cast<void*>(memory);
  forget(opened);
  guarded_close(opened);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  STANDIN_ENTER(cuMemcpyAsync);
  GuardedStream::of(queue_of(stream)).queue([=] { copy(to, from, bytes); });
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  STANDIN_ENTER(cuMemcpyDtoDAsync_v2);
  GuardedStream::of(queue_of(stream)).queue([=] { copy(to, from, bytes); });
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  STANDIN_ENTER(cuMemcpyHtoD_v2);
  return copy_now(to, reinterpret_cast<CUdeviceptr>(from), bytes);
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  STANDIN_ENTER(cuMemcpyDtoH_v2);
  return copy_now(reinterpret_cast<CUdeviceptr>(to), from, bytes);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  STANDIN_ENTER(cuMemsetD32Async);
  GuardedStream::of(queue_of(stream)).queue([=] {
    auto* const words = reinterpret_cast<unsigned*>(to);
    const Unlocked unlocked({words});
    for (size_t i = 0; i < count; ++i) words[i] = value;
  });
  return CUDA_SUCCESS;
}

}  // extern "C"
