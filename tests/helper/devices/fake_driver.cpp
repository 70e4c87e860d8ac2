// SPDX-License-Identifier: BSD-3-Clause
// Devices, contexts, streams, events and kernels of the fake driver.
#include "tests/helper/devices/fake_driver.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "tests/helper/devices/emulated_cuda.h"
#include "tests/helper/devices/fake_state.h"
#include "tests/helper/devices/kernel_pointers.h"
#include "tests/helper/devices/protected_memory.h"

#undef threadIdx
#undef blockIdx
#undef __shared__

namespace slimpi::test {

FakeDriver& fake_driver() {
  static auto* const state = [] {
    auto* made = new FakeDriver;
    for (CUctx_st& context : made->primary) {
      context.device = int(&context - made->primary);
      context.id = ++made->contexts;
    }
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
  if (stream != nullptr && stream != CU_STREAM_LEGACY) {
    expect_alive(stream->device, stream->context, "a stream");
    return stream->queue;
  }
  const CUcontext context = current_context();
  if (context == nullptr) die("the default stream is used without a context");
  if (context->legacy == nullptr) context->legacy = ProtectedStream::open();
  return context->legacy;
}

int fake_bus(int device) {
  const char *const gpus = std::getenv("FAKE_GPUS"), *rank = std::getenv("PMI_RANK");
  if (rank == nullptr) rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const bool own = gpus != nullptr && std::strcmp(gpus, "own") == 0 && rank != nullptr;
  return 0x3b + device + (own ? kFakeDevices * std::atoi(rank) : 0);
}

void expect_alive(int device, unsigned long long context, const char* function) {
  if (fake_driver().primary[device].id == context) return;
  std::fprintf(stderr, "%s: ", function);
  die("a handle of a GPU that was reset since");
}

CUstreamCaptureMode& capture_mode() {
  static thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

bool refused_by_capture() {
  if (!fake_driver().capturing || capture_mode() == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  fake_driver().capture_ended = true;
  return true;
}

void expect_own_process() {
  if (fake_driver().process != getpid()) die("the driver is used in a child of its process");
}

CUresult fake_failure(const char* function) {
  if (fake_driver().failures.empty()) return CUDA_SUCCESS;
  const auto found = fake_driver().failures.find(function);
  if (found == fake_driver().failures.end()) return CUDA_SUCCESS;
  Failure& failure = found->second;
  if (failure.calls-- > 0) return CUDA_SUCCESS;
  const auto result = CUresult(failure.result);
  if (!failure.lost) fake_driver().failures.erase(found);
  return result;
}

int g_priority = 0;  // of the stream that was made last

// Makes a stream. A test that makes cuStreamCreate fail also makes this fail, whichever function
// the program calls.
CUresult make_stream(CUstream* stream, unsigned flags) {
  if (const CUresult told = fake_failure("cuStreamCreate"); told != CUDA_SUCCESS) return told;
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *stream = new CUstream_st{ProtectedStream::open(), current_context()->device,
                            current_context()->id, (flags & CU_STREAM_NON_BLOCKING) == 0};
  ++fake_driver().streams;
  return CUDA_SUCCESS;
}

bool is_legacy(CUstream stream) {
  return stream == nullptr || stream == CU_STREAM_LEGACY;
}

// Returns whether the driver forbids work on this stream because the program is capturing a stream
// that waits for it.
bool implicit_capture(CUstream stream) {
  return fake_driver().capturing_blocking && is_legacy(stream);
}

}  // namespace slimpi::test

using namespace slimpi::test;

extern "C" {

void slimpi_fake_fail(const char* function, int result, int calls, int lost) {
  const std::lock_guard lock(protected_mutex());
  if (function == nullptr)
    fake_driver().failures.clear();
  else
    fake_driver().failures[function] = {result, calls, lost != 0};
}

void slimpi_fake_capture(int begin) {
  const std::lock_guard lock(protected_mutex());
  fake_driver().capturing = begin != 0;
  fake_driver().capturing_blocking = begin == 2;
  if (begin != 0) fake_driver().capture_ended = false;
}
int slimpi_fake_capture_ended(void) {
  return fake_driver().capture_ended;
}

unsigned long slimpi_fake_calls(const char* function) {
  const std::lock_guard lock(protected_mutex());
  if (function != nullptr) return fake_driver().calls[function];
  unsigned long all = 0;
  for (const auto& [name, calls] : fake_driver().calls) all += calls;
  return all;
}

size_t slimpi_fake_memory(void) {
  return protected_used();
}
int slimpi_fake_streams(void) {
  return fake_driver().streams;
}
int slimpi_fake_events(void) {
  return fake_driver().events;
}
int slimpi_fake_contexts(int device) {
  return fake_driver().primary[device].retained;
}

CUresult cuInit(unsigned) {
  const std::lock_guard lock(protected_mutex());
  fake_driver().initialized = true;
  fake_driver().process = getpid();
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
  FAKE_ENTER(cuDeviceGetCount);
  *count = kFakeDevices;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  FAKE_ENTER(cuDeviceGet);
  if (ordinal < 0 || ordinal >= kFakeDevices) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice device) {
  FAKE_ENTER(cuDeviceGetPCIBusId);
  std::snprintf(text, size_t(size), "0000:%02X:00.0", fake_bus(device));
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  FAKE_ENTER(cuDevicePrimaryCtxRetain);
  *context = &fake_driver().primary[device];
  ++(*context)->retained;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  FAKE_ENTER(cuDevicePrimaryCtxRelease_v2);
  --fake_driver().primary[device].retained;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  FAKE_ENTER(cuDevicePrimaryCtxGetState);
  *flags = 0;
  *active = fake_driver().primary[device].retained != 0;
  return CUDA_SUCCESS;
}
// Destroys the GPU's streams, events, kernels and memory. A later use of one of them ends the
// program.
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  FAKE_ENTER(cuDevicePrimaryCtxReset_v2);
  ProtectedStream::run_all();
  fake_driver().primary[device].id = ++fake_driver().contexts;
  fake_driver().primary[device].legacy = nullptr;
  fake_driver().streams = fake_driver().events = 0;
  free_all(device);
  return CUDA_SUCCESS;
}
CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  FAKE_ENTER(cuCtxGetId);
  *id = context->id;
  return CUDA_SUCCESS;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  FAKE_ENTER(cuThreadExchangeStreamCaptureMode);
  std::swap(*mode, capture_mode());
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  FAKE_ENTER(cuCtxPushCurrent_v2);
  context_stack().push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  FAKE_ENTER(cuCtxPopCurrent_v2);
  if (context_stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = current_context();
  context_stack().pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  FAKE_ENTER(cuCtxSetCurrent);
  if (!context_stack().empty()) context_stack().pop_back();
  if (context != nullptr) context_stack().push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  FAKE_ENTER(cuCtxGetCurrent);
  *context = current_context();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  FAKE_ENTER(cuCtxGetDevice);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = current_context()->device;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  FAKE_ENTER(cuCtxGetStreamPriorityRange);
  *least = 0, *greatest = -5;
  return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize(void) {
  FAKE_ENTER(cuCtxSynchronize);
  ProtectedStream::run_all();
  return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  FAKE_ENTER(cuStreamCreateWithPriority);
  g_priority = priority;
  return make_stream(stream, flags);
}
CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  FAKE_ENTER(cuStreamCreate);
  return make_stream(stream, flags);
}
int slimpi_fake_priority(void) {
  return g_priority;
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  FAKE_ENTER(cuStreamDestroy_v2);
  expect_alive(stream->device, stream->context, "cuStreamDestroy_v2");
  ProtectedStream::close(stream->queue);
  delete stream;
  --fake_driver().streams;
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
  FAKE_ENTER_UNSAFE(cuStreamSynchronize);
  ProtectedStream& queue = ProtectedStream::of(queue_of(stream));
  queue.run_until(queue.record());
  return CUDA_SUCCESS;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  FAKE_ENTER(cuStreamWaitEvent);
  if (event->queue == nullptr) return CUDA_SUCCESS;
  slimpi::device::Stream *const other = event->queue, *const queue = queue_of(stream);
  const std::uint64_t number = event->number;
  if (queue != other)
    ProtectedStream::of(queue).queue_until(
        [=] { return ProtectedStream::of(other).try_until(number); });
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  FAKE_ENTER(cuEventCreate);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *event = new CUevent_st{nullptr, 0, current_context()->device, current_context()->id};
  ++fake_driver().events;
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent event) {
  FAKE_ENTER(cuEventDestroy_v2);
  expect_alive(event->device, event->context, "cuEventDestroy_v2");
  delete event;
  --fake_driver().events;
  return CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  FAKE_ENTER(cuStreamIsCapturing);
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return implicit_capture(stream) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  FAKE_ENTER(cuEventRecord);
  expect_alive(event->device, event->context, "cuEventRecord");
  if (implicit_capture(stream)) {
    fake_driver().capture_ended = true;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (!is_legacy(stream) && stream->blocking) {
    ProtectedStream& legacy = ProtectedStream::of(queue_of(nullptr));
    const std::uint64_t number = legacy.record();
    ProtectedStream::of(queue_of(stream)).queue_until([&legacy, number] {
      return legacy.try_until(number);
    });
  }
  event->queue = queue_of(stream);
  event->number = ProtectedStream::of(event->queue).record();
  return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent event) {
  FAKE_ENTER_UNSAFE(cuEventQuery);
  expect_alive(event->device, event->context, "cuEventQuery");
  if (event->queue == nullptr) return CUDA_SUCCESS;
  return ProtectedStream::of(event->queue).query(event->number) ? CUDA_SUCCESS
                                                                : CUDA_ERROR_NOT_READY;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  FAKE_ENTER_UNSAFE(cuModuleLoadData);
  std::uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  if (magic != 0xba55ed50) return CUDA_ERROR_INVALID_IMAGE;
  *module = reinterpret_cast<CUmodule>(std::uintptr_t(1));
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  FAKE_ENTER(cuModuleGetFunction);
  const EmulatedKernel* const found = find_emulated(name);
  // The function lives as long as its module, and slimpi never unloads a module.
  *function = new CUfunc_st{found, current_context()->id};
  return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
// Has nothing to load, because all kernels exist from the start.
CUresult cuFuncLoad(CUfunction) {
  FAKE_ENTER(cuFuncLoad);
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned blocks, unsigned, unsigned, unsigned threads,
                        unsigned, unsigned, unsigned, CUstream stream, void** parameters, void**) {
  FAKE_ENTER(cuLaunchKernel);
  expect_alive(current_context()->device, function->context, "cuLaunchKernel");
  const EmulatedKernel* const kernel = function->kernel;
  const auto* const bytes = static_cast<const char*>(parameters[0]);
  const auto arguments =
      std::make_shared<std::vector<std::max_align_t>>(kernel->bytes / sizeof(std::max_align_t) + 1);
  std::memcpy(arguments->data(), bytes, kernel->bytes);
  expect_reachable(*kernel, arguments->data());
  if (current_context()->device != stream->device) return CUDA_ERROR_INVALID_HANDLE;
  const int device = stream->device;
  ProtectedStream::of(queue_of(stream)).queue([=] {
    const std::lock_guard lock(protected_mutex());
    reach_arguments(*kernel, arguments->data(), device);
    run_emulated(*kernel, blocks, threads, arguments->data());
  });
  return CUDA_SUCCESS;
}

}  // extern "C"
