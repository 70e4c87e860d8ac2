// SPDX-License-Identifier: BSD-3-Clause
// Streams of a GPU (device.h). A kernel launch returns no status, so a stream keeps its first
// failure, which the next function of the stream that returns a Status reports.
#pragma once
#include "device/cuda/context.h"
#include "device/device.h"

namespace slimpi::device::cuda {

// The number of CUDA events of a stream, which form a ring: events n and n + kEvents are the same
// CUDA event. Once event n + kEvents is recorded, a query of event n sees only that one, so it may
// report n too late, but never too early.
constexpr int kEvents = 256;

struct CudaStream {
  Context* context = nullptr;
  CUstream handle = nullptr;
  CUevent before = nullptr;  // recorded on the program's default stream, after its work
  // A stream without work of its own, which CUDA makes wait for the default stream's work. It
  // replaces the default stream while the program captures; see begin_work().
  CUstream behind_default = nullptr;
  CUevent events[kEvents] = {};
  std::uint64_t recorded = 0, reached = 0;
  std::uint64_t in_ring[kEvents] = {};  // the event in each entry of the ring
  bool idle = true;                     // the last event was reached, and no work has begun since
  CUresult failure = CUDA_SUCCESS;
  const char* failed = "";    // the operation that failed
  double* partial = nullptr;  // scratch of the compare kernels, on the GPU
  void* blas = nullptr;       // cuBLAS's handle, made at the first product

  static CudaStream& of(Stream* stream) { return *reinterpret_cast<CudaStream*>(stream); }
};

Status open_stream(const Location& location, Stream** stream);
void close_stream(Stream* stream);
Status copy(void* to, const void* from, std::size_t bytes, Stream* stream);
Status record(Stream* stream, std::uint64_t* event);
Status query(Stream* stream, std::uint64_t event, bool* reached);
Status wait_event(Stream* stream, Stream* other, std::uint64_t event);

// Makes an idle stream wait for the work that the program has queued on its own default stream.
// Called before work is queued, with the stream's context current.
void begin_work(CudaStream& stream);

// Stores the result of the operation `what` in the stream if it is the first failure there.
void note(CudaStream& stream, CUresult result, const char* what);

}  // namespace slimpi::device::cuda
