// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/stream.h"

#include "device/cuda/functions.h"

namespace slimpi::device::cuda {

namespace {

// Destroys a stream. Its context must be current.
void destroy(CudaStream* stream) {
  if (stream->handle != nullptr) (void)driver().cuStreamSynchronize(stream->handle);
  close_blas(*stream);
  for (CUevent event : stream->events)
    if (event != nullptr) (void)driver().cuEventDestroy_v2(event);
  if (stream->before != nullptr) (void)driver().cuEventDestroy_v2(stream->before);
  if (stream->partial != nullptr)
    (void)driver().cuMemFree_v2(reinterpret_cast<CUdeviceptr>(stream->partial));
  for (CUstream handle : {stream->handle, stream->behind_default})
    if (handle != nullptr) (void)driver().cuStreamDestroy_v2(handle);
  delete stream;
}

// Creates a stream of the highest priority, so that slimpi's short kernels run as soon as one block
// of the program's kernels ends, even if these fill the GPU. The program, and all other ranks, wait
// for slimpi's kernels.
CUresult make(CUstream* stream, CUstream_flags flags) {
  const Driver& cuda = driver();
  int least = 0, greatest = 0;
  if (cuda.cuCtxGetStreamPriorityRange == nullptr || cuda.cuStreamCreateWithPriority == nullptr ||
      cuda.cuCtxGetStreamPriorityRange(&least, &greatest) != CUDA_SUCCESS)
    return cuda.cuStreamCreate(stream, flags);
  const CUresult result = cuda.cuStreamCreateWithPriority(stream, flags, greatest);
  return result == CUDA_ERROR_NOT_SUPPORTED ? cuda.cuStreamCreate(stream, flags) : result;
}

Status fill(CudaStream& stream) {
  const Driver& cuda = driver();
  SLIMPI_TRY(check(make(&stream.handle, CU_STREAM_NON_BLOCKING), "making a stream"));
  SLIMPI_TRY(check(make(&stream.behind_default, CU_STREAM_DEFAULT), "making a stream"));
  SLIMPI_TRY(check(cuda.cuEventCreate(&stream.before, CU_EVENT_DISABLE_TIMING), "making an event"));
  for (CUevent& event : stream.events)
    SLIMPI_TRY(check(cuda.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "making an event"));
  CUdeviceptr partial = 0;
  SLIMPI_TRY(check(cuda.cuMemAlloc_v2(&partial, 2 * kernels::cuda::kCompareBlocks * sizeof(double)),
                   "memory for a stream"));
  stream.partial = reinterpret_cast<double*>(partial);
  return Status::ok;
}

Status failure(const CudaStream& stream) {
  return check(stream.failure, stream.failed);
}

}  // namespace

void note(CudaStream& stream, CUresult result, const char* what) {
  if (result == CUDA_SUCCESS || stream.failure != CUDA_SUCCESS) return;
  stream.failure = result;
  stream.failed = what;
}

void begin_work(CudaStream& stream) {
  if (!stream.idle) return;
  stream.idle = false;
  const char* const what = "waiting for the program's own work on the GPU";
  CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  if (driver().cuStreamIsCapturing == nullptr ||
      driver().cuStreamIsCapturing(CU_STREAM_LEGACY, &capturing) != result)
    result = driver().cuEventRecord(stream.before, CU_STREAM_LEGACY);
  // While the program captures a stream that waits for the default stream, CUDA forbids events on
  // the default stream, and the program cannot queue work on it either. So the event is recorded on
  // the stream `behind_default`, which allows events and waits for the work that was queued before
  // the capture. The result of cuEventRecord is checked as well, because another thread may begin a
  // capture after cuStreamIsCapturing.
  if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
    result = driver().cuEventRecord(stream.before, stream.behind_default);
  note(stream, result, what);
  note(stream, driver().cuStreamWaitEvent(stream.handle, stream.before, CU_EVENT_WAIT_DEFAULT),
       what);
}

Status open_stream(const Location& location, Stream** stream) {
  const Current current(location);
  SLIMPI_TRY(current.status());
  auto* const opened = new CudaStream;
  opened->context = &current.context();
  if (const Status status = fill(*opened); status != Status::ok) {
    destroy(opened);
    return status;
  }
  *stream = reinterpret_cast<Stream*>(opened);
  return Status::ok;
}

void close_stream(Stream* stream) {
  if (stream == nullptr) return;
  CudaStream* const s = &CudaStream::of(stream);
  if (!exists(*s->context)) return delete s;
  const Current current(s->context->handle);
  // If the context was destroyed, so were its streams and events, and only the object is left.
  if (current.status() == Status::ok)
    destroy(s);
  else
    delete s;
}

Status copy(void* to, const void* from, std::size_t bytes, Stream* stream) {
  CudaStream& s = CudaStream::of(stream);
  if (bytes == 0 || to == from) return failure(s);
  const Current current(s.context->handle, Current::queues);
  SLIMPI_TRY(current.status());
  begin_work(s);
  note(s,
       driver().cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to),
                              reinterpret_cast<CUdeviceptr>(from), bytes, s.handle),
       "copying to or from the GPU");
  return failure(s);
}

Status record(Stream* stream, std::uint64_t* event) {
  CudaStream& s = CudaStream::of(stream);
  const Current current(s.context->handle, Current::queues);
  SLIMPI_TRY(current.status());
  const int slot = int((s.recorded + 1) % kEvents);
  note(s, driver().cuEventRecord(s.events[slot], s.handle), "recording an event");
  SLIMPI_TRY(failure(s));
  *event = s.in_ring[slot] = ++s.recorded;
  return Status::ok;
}

Status query(Stream* stream, std::uint64_t event, bool* reached) {
  CudaStream& s = CudaStream::of(stream);
  *reached = event <= s.reached;
  if (*reached) return failure(s);
  const Current current(s.context->handle);
  SLIMPI_TRY(current.status());
  const int slot = int(event % kEvents);
  const CUresult result = driver().cuEventQuery(s.events[slot]);
  if (result == CUDA_ERROR_NOT_READY) return failure(s);
  note(s, result, "work on the GPU");
  SLIMPI_TRY(failure(s));
  s.reached = s.in_ring[slot];
  *reached = true;
  s.idle = s.reached == s.recorded;
  return Status::ok;
}

Status wait_event(Stream* stream, Stream* other, std::uint64_t event) {
  CudaStream &s = CudaStream::of(stream), &o = CudaStream::of(other);
  SLIMPI_TRY(failure(o));
  const Current current(s.context->handle, Current::queues);
  SLIMPI_TRY(current.status());
  begin_work(s);
  note(s, driver().cuStreamWaitEvent(s.handle, o.events[event % kEvents], CU_EVENT_WAIT_DEFAULT),
       "waiting for another stream of the GPU");
  return failure(s);
}

}  // namespace slimpi::device::cuda
