// SPDX-License-Identifier: BSD-3-Clause
// Streams of a GPU; see device.h. What goes wrong in a launch, which returns nothing, is kept and
// comes out of the next function that returns a Status.
#pragma once
#include "device/cuda/context.h"
#include "device/device.h"

namespace slimpi::device::cuda {

// Marks are events of a ring. A mark whose event has been used again for a later mark counts as
// reached when that one is: later than it was, never earlier.
constexpr int kEvents = 64;

struct CudaStream {
  Context* context = nullptr;
  CUstream handle = nullptr;
  CUevent before = nullptr;  // what the program queued before
  CUevent events[kEvents] = {};
  std::uint64_t recorded = 0, reached = 0;
  std::uint64_t in_ring[kEvents] = {};  // which mark an event stands for
  bool idle = true;                     // nothing has been queued since the last mark was reached
  CUresult failure = CUDA_SUCCESS;
  const char* failed = "";    // what was being done
  double* partial = nullptr;  // scratch of the compare kernels, on the GPU
  void* blas = nullptr;       // cuBLAS's handle, once a product was asked for

  static CudaStream& of(Stream* stream) { return *reinterpret_cast<CudaStream*>(stream); }
};

Status open_stream(const void* like, Stream** stream);
void close_stream(Stream* stream);
Status copy(void* to, const void* from, std::size_t bytes, Stream* stream);
Status record(Stream* stream, std::uint64_t* event);
Status query(Stream* stream, std::uint64_t event, bool* reached);
Status wait_event(Stream* stream, Stream* other, std::uint64_t event);

// To be called, with the stream's context current, before work is queued: lets the work of an idle
// stream wait for what the program has queued on its own default stream.
void begin_work(CudaStream& stream);

// Keeps the first failure.
void note(CudaStream& stream, CUresult result, const char* what);

}  // namespace slimpi::device::cuda
