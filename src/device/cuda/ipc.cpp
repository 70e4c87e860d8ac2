// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/ipc.h"

#include <dlfcn.h>

#include <cstring>

#include "device/cuda/context.h"

namespace slimpi::device::cuda {

namespace {

// Found separately: a driver without them can do everything else.
struct Functions {
  decltype(&::cuIpcGetMemHandle) offer;
  decltype(&::cuIpcOpenMemHandle) open;
  decltype(&::cuIpcCloseMemHandle) close;
  bool complete() const { return offer != nullptr && open != nullptr && close != nullptr; }
};

const Functions& functions() {
  static const Functions found = [] {
    void* const handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    const auto find = [&](const char* name) {
      return handle == nullptr ? nullptr : dlsym(handle, name);
    };
    return Functions{
        reinterpret_cast<decltype(&::cuIpcGetMemHandle)>(find("cuIpcGetMemHandle")),
        reinterpret_cast<decltype(&::cuIpcOpenMemHandle)>(find("cuIpcOpenMemHandle_v2")),
        reinterpret_cast<decltype(&::cuIpcCloseMemHandle)>(find("cuIpcCloseMemHandle"))};
  }();
  return found;
}

Status missing() {
  return failed(Status::unsupported, "the CUDA driver has no memory that processes share");
}

Status offer(const void* memory, Ipc::Handle* handle) {
  if (!functions().complete()) return missing();
  Context* context = nullptr;
  SLIMPI_TRY(context_of(memory, &context));
  const Current current(context->handle);
  SLIMPI_TRY(current.status());
  CUipcMemHandle offered;
  SLIMPI_TRY(check(functions().offer(&offered, reinterpret_cast<CUdeviceptr>(memory)),
                   "offering GPU memory to the other ranks of the node"));
  static_assert(sizeof offered <= sizeof *handle);
  std::memcpy(handle, &offered, sizeof offered);
  return Status::ok;
}

Status open(const Location& location, const Ipc::Handle& handle, void** memory) {
  if (!functions().complete()) return missing();
  Context* context = nullptr;
  SLIMPI_TRY(context_of(location, &context));
  const Current current(context->handle);
  SLIMPI_TRY(current.status());
  CUipcMemHandle offered;
  std::memcpy(&offered, &handle, sizeof offered);
  CUdeviceptr opened = 0;
  SLIMPI_TRY(check(functions().open(&opened, offered, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                   "opening the GPU memory of another rank of the node"));
  *memory = reinterpret_cast<void*>(opened);
  return Status::ok;
}

// There is no caller to report a failure to.
void close(void* memory) {
  Context* context = nullptr;
  if (context_of(memory, &context) != Status::ok) return;
  const Current current(context->handle);
  if (current.status() == Status::ok)
    (void)functions().close(reinterpret_cast<CUdeviceptr>(memory));
}

}  // namespace

const Ipc kIpc = {offer, open, close};

}  // namespace slimpi::device::cuda
