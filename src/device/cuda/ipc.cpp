// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/functions.h"

#include <cstring>

#include "device/cuda/context.h"

namespace slimpi::device::cuda {

namespace {

bool complete() {
  return driver().cuIpcGetMemHandle != nullptr && driver().cuIpcOpenMemHandle_v2 != nullptr &&
         driver().cuIpcCloseMemHandle != nullptr;
}

Status missing() {
  return failed(Status::unsupported, "the CUDA driver has no memory that processes share");
}

Status offer(const void* memory, Ipc::Handle* handle) {
  if (!complete()) return missing();
  const Current current(memory);
  SLIMPI_TRY(current.status());
  CUipcMemHandle offered;
  SLIMPI_TRY(check(driver().cuIpcGetMemHandle(&offered, reinterpret_cast<CUdeviceptr>(memory)),
                   "offering GPU memory to the other ranks of the node"));
  static_assert(sizeof offered <= sizeof *handle);
  std::memcpy(handle, &offered, sizeof offered);
  return Status::ok;
}

Status open(const Location& location, const Ipc::Handle& handle, void** memory) {
  if (!complete()) return missing();
  const Current current(location);
  SLIMPI_TRY(current.status());
  CUipcMemHandle offered;
  std::memcpy(&offered, &handle, sizeof offered);
  CUdeviceptr opened = 0;
  SLIMPI_TRY(
      check(driver().cuIpcOpenMemHandle_v2(&opened, offered, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
            "opening the GPU memory of another rank of the node"));
  *memory = reinterpret_cast<void*>(opened);
  return Status::ok;
}

// There is no caller to report a failure to. A reset of the GPU has closed it already.
void close(void* memory) {
  if (!is_known(memory)) return;
  const Current current(memory);
  if (current.status() == Status::ok)
    (void)driver().cuIpcCloseMemHandle(reinterpret_cast<CUdeviceptr>(memory));
}

}  // namespace

const Ipc kIpc = {offer, open, close};

}  // namespace slimpi::device::cuda
