// SPDX-License-Identifier: BSD-3-Clause
// Devices, contexts, streams, events and kernels of the stand-in driver.
#include "tests/helper/standin_driver.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "tests/helper/emulated_cuda.h"
#include "tests/helper/guarded_memory.h"
#include "tests/helper/standin_state.h"

#undef threadIdx
#undef blockIdx
#undef __shared__

namespace slimpi::test {

Standin& standin() {
  static auto* const state = [] {
    auto* made = new Standin;
    for (int device = 0; device < kStandinDevices; ++device) made->primary[device].device = device;
    return made;
  }();
  return *state;
}

std::vector<CUcontext>& context_stack() {
  static thread_local std::vector<CUcontext> stack;
  return stack;
}

CUcontext current_context() {
  return context_stack().empty() ? nullptr : context_stack().back();
}

device::Stream* queue_of(CUstream stream) {
  if (stream != nullptr && stream != CU_STREAM_LEGACY) return stream->queue;
  const CUcontext context = current_context();
  if (context == nullptr) die("the default stream is used without a context");
  if (context->legacy == nullptr) context->legacy = GuardedStream::open();
  return context->legacy;
}

int standin_bus(int device) {
  const char *const gpus = std::getenv("STANDIN_GPUS"), *const rank = std::getenv("PMI_RANK");
  const bool own = gpus != nullptr && std::strcmp(gpus, "own") == 0 && rank != nullptr;
  return 0x3b + device + (own ? kStandinDevices * std::atoi(rank) : 0);
}

CUresult standin_failure(const char* function) {
  const auto found = standin().failures.find(function);
  if (found == standin().failures.end()) return CUDA_SUCCESS;
  Failure& failure = found->second;
  if (failure.calls-- > 0) return CUDA_SUCCESS;
  const auto result = CUresult(failure.result);
  if (!failure.lost) standin().failures.erase(found);
  return result;
}

}  // namespace slimpi::test

using namespace slimpi::test;

extern "C" {

void slimpi_standin_fail(const char* function, int result, int calls, int lost) {
  const std::lock_guard lock(guarded_mutex());
  if (function == nullptr)
    standin().failures.clear();
  else
    standin().failures[function] = {result, calls, lost != 0};
}

size_t slimpi_standin_memory(void) {
  return guarded_used();
}
int slimpi_standin_streams(void) {
  return standin().streams;
}
int slimpi_standin_events(void) {
  return standin().events;
}
int slimpi_standin_contexts(int device) {
  return standin().primary[device].retained;
}
unsigned long slimpi_standin_kernels(void) {
  return standin().kernels;
}

CUresult cuInit(unsigned) {
  const std::lock_guard lock(guarded_mutex());
  standin().initialized = true;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OF_A_TEST";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "what the test wants to read";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  STANDIN_ENTER(cuDeviceGetCount);
  *count = kStandinDevices;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  STANDIN_ENTER(cuDeviceGet);
  if (ordinal < 0 || ordinal >= kStandinDevices) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  STANDIN_ENTER(cuDeviceGetName);
  std::snprintf(name, size_t(size), "stand-in");
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice device) {
  STANDIN_ENTER(cuDeviceGetPCIBusId);
  std::snprintf(text, size_t(size), "0000:%02X:00.0", standin_bus(device));
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  STANDIN_ENTER(cuDevicePrimaryCtxRetain);
  *context = &standin().primary[device];
  ++(*context)->retained;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  STANDIN_ENTER(cuDevicePrimaryCtxRelease_v2);
  --standin().primary[device].retained;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  STANDIN_ENTER(cuDevicePrimaryCtxGetState);
  *flags = 0;
  *active = standin().primary[device].retained != 0;
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  STANDIN_ENTER(cuCtxPushCurrent_v2);
  context_stack().push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  STANDIN_ENTER(cuCtxPopCurrent_v2);
  if (context_stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = current_context();
  context_stack().pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  STANDIN_ENTER(cuCtxSetCurrent);
  if (!context_stack().empty()) context_stack().pop_back();
  if (context != nullptr) context_stack().push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  STANDIN_ENTER(cuCtxGetCurrent);
  *context = current_context();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  STANDIN_ENTER(cuCtxGetDevice);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = current_context()->device;
  return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize(void) {
  STANDIN_ENTER(cuCtxSynchronize);
  GuardedStream::run_all();
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  STANDIN_ENTER(cuStreamCreate);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *stream = new CUstream_st{GuardedStream::open(), current_context()->device};
  ++standin().streams;
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  STANDIN_ENTER(cuStreamDestroy_v2);
  GuardedStream::close(stream->queue);
  delete stream;
  --standin().streams;
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
  STANDIN_ENTER(cuStreamSynchronize);
  GuardedStream& queue = GuardedStream::of(queue_of(stream));
  queue.run_until(queue.mark());
  return CUDA_SUCCESS;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  STANDIN_ENTER(cuStreamWaitEvent);
  if (event->queue == nullptr) return CUDA_SUCCESS;
  slimpi::device::Stream *const other = event->queue, *const queue = queue_of(stream);
  const std::uint64_t mark = event->mark;
  if (queue != other)
    GuardedStream::of(queue).queue_until([=] { return GuardedStream::of(other).try_until(mark); });
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  STANDIN_ENTER(cuEventCreate);
  *event = new CUevent_st;
  ++standin().events;
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent event) {
  STANDIN_ENTER(cuEventDestroy_v2);
  delete event;
  --standin().events;
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  STANDIN_ENTER(cuEventRecord);
  event->queue = queue_of(stream);
  event->mark = GuardedStream::of(event->queue).mark();
  return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent event) {
  STANDIN_ENTER(cuEventQuery);
  if (event->queue == nullptr) return CUDA_SUCCESS;
  return GuardedStream::of(event->queue).poll(event->mark) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  STANDIN_ENTER(cuModuleLoadData);
  std::uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  if (magic != 0xba55ed50) return CUDA_ERROR_INVALID_IMAGE;
  *module = reinterpret_cast<CUmodule>(std::uintptr_t(1));
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  STANDIN_ENTER(cuModuleGetFunction);
  const EmulatedKernel* const found = find_emulated(name);
  *function = reinterpret_cast<CUfunction>(const_cast<EmulatedKernel*>(found));
  return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuLaunchKernel(CUfunction function, unsigned blocks, unsigned, unsigned, unsigned threads,
                        unsigned, unsigned, unsigned, CUstream stream, void** parameters, void**) {
  STANDIN_ENTER(cuLaunchKernel);
  const auto* const kernel = reinterpret_cast<const EmulatedKernel*>(function);
  const auto* const bytes = static_cast<const char*>(parameters[0]);
  const auto arguments =
      std::make_shared<std::vector<std::max_align_t>>(kernel->bytes / sizeof(std::max_align_t) + 1);
  std::memcpy(arguments->data(), bytes, kernel->bytes);
  ++standin().kernels;
  if (current_context()->device != stream->device) return CUDA_ERROR_INVALID_HANDLE;
  const int device = stream->device;
  // The memory of another GPU stays out of reach.
  GuardedStream::of(queue_of(stream)).queue([=] {
    std::vector<const void*> reachable;
    for (const auto& [begin, allocation] : standin().memory)
      if (allocation.device == device) reachable.push_back(reinterpret_cast<const void*>(begin));
    const Unlocked unlocked(reachable);
    run_emulated(*kernel, blocks, threads, arguments->data());
  });
  return CUDA_SUCCESS;
}

}  // extern "C"
