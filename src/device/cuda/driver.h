// SPDX-License-Identifier: BSD-3-Clause
// The CUDA driver that the process has loaded: its functions, found by name, and its errors as
// Status. The plugin is not linked to CUDA, so a machine without CUDA can load it, too.
#pragma once
#include <cuda.h>

#include <string>

#include "device/plugin.h"

namespace slimpi::device::cuda {

// The functions that every driver must have. open_driver() fails without one of them.
#define SLIMPI_CUDA_FUNCTIONS(X)  \
  X(cuCtxGetCurrent)              \
  X(cuCtxGetDevice)               \
  X(cuCtxPopCurrent_v2)           \
  X(cuCtxPushCurrent_v2)          \
  X(cuDeviceGet)                  \
  X(cuDeviceGetCount)             \
  X(cuDeviceGetPCIBusId)          \
  X(cuDevicePrimaryCtxGetState)   \
  X(cuDevicePrimaryCtxRelease_v2) \
  X(cuDevicePrimaryCtxRetain)     \
  X(cuEventCreate)                \
  X(cuEventDestroy_v2)            \
  X(cuEventQuery)                 \
  X(cuEventRecord)                \
  X(cuGetErrorName)               \
  X(cuGetErrorString)             \
  X(cuLaunchKernel)               \
  X(cuMemAlloc_v2)                \
  X(cuMemFreeHost)                \
  X(cuMemFree_v2)                 \
  X(cuMemHostAlloc)               \
  X(cuMemHostRegister_v2)         \
  X(cuMemHostUnregister)          \
  X(cuMemcpyAsync)                \
  X(cuMemsetD32Async)             \
  X(cuModuleGetFunction)          \
  X(cuModuleLoadData)             \
  X(cuPointerGetAttributes)       \
  X(cuStreamCreate)               \
  X(cuStreamDestroy_v2)           \
  X(cuStreamSynchronize)          \
  X(cuStreamWaitEvent)

// Functions that are null if the driver lacks them. cuCtxGetId exists since CUDA 12.0, and the two
// functions after it since 10.1. The two for priorities are in every driver, but slimpi works
// without them.
#define SLIMPI_CUDA_LATER_FUNCTIONS(X) \
  X(cuCtxGetId)                        \
  X(cuStreamIsCapturing)               \
  X(cuThreadExchangeStreamCaptureMode) \
  X(cuCtxGetStreamPriorityRange)       \
  X(cuStreamCreateWithPriority)

struct Driver {
#define SLIMPI_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  SLIMPI_CUDA_FUNCTIONS(SLIMPI_CUDA_MEMBER)
  SLIMPI_CUDA_LATER_FUNCTIONS(SLIMPI_CUDA_MEMBER)
#undef SLIMPI_CUDA_MEMBER
  CUresult (*cuFuncLoad)(CUfunction) = nullptr;  // since CUDA 12.4, like its declaration
};

// Finds the functions in the library that the process has loaded as libcuda.so.1, and stores
// `library` for failed() and log_message(). Returns false if that library is not loaded or, with a
// warning in the log, if the driver is too old.
bool open_driver(const Library& library);

// Returns the driver. Valid after open_driver().
const Driver& driver();

// Call the library's fail() and log(), because the plugin's own copies have no effect in the
// library.
Status failed(Status status, const std::string& text);
void log_message(LogLevel level, const std::string& text);

// Converts a result of the driver to a Status: ok for CUDA_SUCCESS, no_memory if the driver has no
// memory left, otherwise Status::device. The error text has the operation `what` and CUDA's own
// text.
Status check(CUresult result, const char* what);

}  // namespace slimpi::device::cuda
