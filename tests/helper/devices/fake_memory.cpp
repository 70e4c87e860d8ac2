// SPDX-License-Identifier: BSD-3-Clause
// The memory of the fake driver.
#include <cstring>
#include <functional>
#include <mutex>
#include <utility>

#include "tests/helper/devices/fake_driver.h"
#include "tests/helper/devices/fake_state.h"
#include "tests/helper/devices/protected_memory.h"

namespace slimpi::test {

const Allocation* find_allocation(std::uintptr_t address) {
  auto found = fake_driver().memory.upper_bound(address);
  if (found == fake_driver().memory.begin()) return nullptr;
  --found;
  return address < found->first + found->second.bytes ? &found->second : nullptr;
}

bool is_for_kernels(const void* memory, bool mapped) {
  const Allocation* const found = find_allocation(reinterpret_cast<std::uintptr_t>(memory));
  if (found == nullptr) return false;
  return found->type == CU_MEMORYTYPE_DEVICE || found->managed || (mapped && found->mapped);
}

void free_all(int device) {
  auto& memory = fake_driver().memory;
  for (auto at = memory.begin(); at != memory.end();) {
    if (at->second.device != device) {
      ++at;
      continue;
    }
    auto* const given = reinterpret_cast<void*>(at->first);
    if (!at->second.registered)
      at->second.type == CU_MEMORYTYPE_HOST ? staging_give_back(given) : protected_give_back(given);
    at = memory.erase(at);
  }
}

namespace {

CUresult keep(void* memory, std::size_t bytes, CUmemorytype type, bool managed, CUcontext context) {
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const int device = current_context()->device;
  fake_driver().memory[reinterpret_cast<std::uintptr_t>(memory)] = {
      bytes, type, managed, device, context, ++fake_driver().allocations};
  return CUDA_SUCCESS;
}

void forget(const void* memory) {
  ProtectedStream::run_all();
  if (fake_driver().memory.erase(reinterpret_cast<std::uintptr_t>(memory)) == 0)
    die("memory is freed that the driver has not given");
}

// Copies memory of any kind immediately.
void copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  protected_copy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
}

// Queues a copy. If the driver has not pinned one of the memories, the copy is done on return.
CUresult queue_copy(CUdeviceptr to, CUdeviceptr from, CUstream stream, std::function<void()> work) {
  ProtectedStream& queue = ProtectedStream::of(queue_of(stream));
  queue.queue(std::move(work));
  if (find_allocation(to) != nullptr && find_allocation(from) != nullptr) return CUDA_SUCCESS;
  ++fake_driver().pageable;
  queue.run_until(queue.record());
  return CUDA_SUCCESS;
}

// Copies after the work that is queued on the default stream. The copy is done on return.
CUresult copy_now(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  ProtectedStream& queue = ProtectedStream::of(queue_of(nullptr));
  queue.run_until(queue.record());
  copy(to, from, bytes);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace slimpi::test

using namespace slimpi::test;

extern "C" {

unsigned long slimpi_fake_allocations(void) {
  return fake_driver().allocations;
}
unsigned long slimpi_fake_attributes(void) {
  return fake_driver().attributes;
}
unsigned long slimpi_fake_pageable(void) {
  return fake_driver().pageable;
}
size_t slimpi_fake_registered(void) {
  const std::lock_guard lock(protected_mutex());
  size_t bytes = 0;
  for (const auto& [begin, allocation] : fake_driver().memory)
    if (allocation.registered) bytes += allocation.bytes;
  return bytes;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* names, void** values,
                                CUdeviceptr pointer) {
  FAKE_ENTER(cuPointerGetAttributes);
  const Allocation* const found = find_allocation(pointer);
  fake_driver().attributes += count;
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
      case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *static_cast<unsigned long long*>(values[i]) = found != nullptr ? found->number : 0;
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute name, CUdeviceptr pointer) {
  const CUresult result = cuPointerGetAttributes(1, &name, &value, pointer);
  return result == CUDA_SUCCESS && find_allocation(pointer) == nullptr ? CUDA_ERROR_INVALID_VALUE
                                                                       : result;
}

CUresult cuMemAlloc_v2(CUdeviceptr* memory, size_t bytes) {
  FAKE_ENTER_UNSAFE(cuMemAlloc_v2);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  void* const taken = protected_take(bytes);
  *memory = reinterpret_cast<CUdeviceptr>(taken);
  return keep(taken, bytes, CU_MEMORYTYPE_DEVICE, false, current_context());
}
CUresult cuMemAllocAsync(CUdeviceptr* memory, size_t bytes, CUstream) {
  FAKE_ENTER(cuMemAllocAsync);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  void* const taken = protected_take(bytes);
  *memory = reinterpret_cast<CUdeviceptr>(taken);
  return keep(taken, bytes, CU_MEMORYTYPE_DEVICE, false, nullptr);
}
CUresult cuMemFree_v2(CUdeviceptr memory) {
  FAKE_ENTER_UNSAFE(cuMemFree_v2);
  auto* const given = reinterpret_cast<void*>(memory);
  const Allocation* const found = find_allocation(memory);
  const bool managed = found != nullptr && found->managed;
  forget(given);
  managed ? staging_give_back(given) : protected_give_back(given);
  return CUDA_SUCCESS;
}

// Managed memory is ordinary memory and not the protected device's, because the CPU may touch it,
// and is reported as host memory, as by a driver while the pages are in the host.
CUresult cuMemAllocManaged(CUdeviceptr* memory, size_t bytes, unsigned) {
  FAKE_ENTER(cuMemAllocManaged);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  void* const taken = staging_take(bytes);
  *memory = reinterpret_cast<CUdeviceptr>(taken);
  return keep(taken, bytes, CU_MEMORYTYPE_HOST, true, current_context());
}

CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  FAKE_ENTER_UNSAFE(cuMemHostAlloc);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *memory = staging_take(bytes);
  const CUresult kept = keep(*memory, bytes, CU_MEMORYTYPE_HOST, false, current_context());
  if (kept == CUDA_SUCCESS)
    fake_driver().memory[reinterpret_cast<std::uintptr_t>(*memory)].mapped =
        (flags & CU_MEMHOSTALLOC_DEVICEMAP) != 0;
  return kept;
}
CUresult cuMemFreeHost(void* memory) {
  FAKE_ENTER_UNSAFE(cuMemFreeHost);
  forget(memory);
  staging_give_back(memory);
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void* memory, size_t bytes, unsigned) {
  FAKE_ENTER_UNSAFE(cuMemHostRegister_v2);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (find_allocation(reinterpret_cast<CUdeviceptr>(memory)) != nullptr)
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  const CUresult kept = keep(memory, bytes, CU_MEMORYTYPE_HOST, false, current_context());
  fake_driver().memory[reinterpret_cast<std::uintptr_t>(memory)].registered = true;
  return kept;
}
// Reads the memory first, so that a program is ended here if it unmaps memory before it unregisters
// it.
CUresult cuMemHostUnregister(void* memory) {
  FAKE_ENTER_UNSAFE(cuMemHostUnregister);
  const Allocation* const found = find_allocation(reinterpret_cast<CUdeviceptr>(memory));
  if (found == nullptr || !found->registered) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  const auto* const bytes = static_cast<const volatile char*>(memory);
  static_cast<void>(bytes[0]);
  static_cast<void>(bytes[found->bytes - 1]);
  forget(memory);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  FAKE_ENTER(cuMemcpyAsync);
  return queue_copy(to, from, stream, [=] { copy(to, from, bytes); });
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  FAKE_ENTER(cuMemcpyDtoDAsync_v2);
  ProtectedStream::of(queue_of(stream)).queue([=] { copy(to, from, bytes); });
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  FAKE_ENTER(cuMemcpyHtoD_v2);
  return copy_now(to, reinterpret_cast<CUdeviceptr>(from), bytes);
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  FAKE_ENTER(cuMemcpyDtoH_v2);
  return copy_now(reinterpret_cast<CUdeviceptr>(to), from, bytes);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  FAKE_ENTER(cuMemsetD32Async);
  ProtectedStream::of(queue_of(stream)).queue([=] {
    auto* const words = reach(reinterpret_cast<unsigned*>(to));
    for (size_t i = 0; i < count; ++i) words[i] = value;
  });
  return CUDA_SUCCESS;
}

}  // extern "C"
