// SPDX-License-Identifier: BSD-3-Clause
#include "call/staging.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "call/arguments.h"
#include "comm/stream_wait.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {

using device::Location;

constexpr std::size_t kAlignment = 256;  // buffer and copy have equal addresses modulo this

// Keeps the staging buffers of finished calls, so that later calls reuse them. Thread-safe.
class StagingPool {
 public:
  // Returns the only pool. It is never destroyed, because exit handlers may still call MPI after
  // static destruction.
  static StagingPool& all() {
    static auto* const pool = new StagingPool;
    return *pool;
  }

  // Takes a free staging buffer of `bytes` at the location. If none is large enough, enlarges one
  // or makes a new one. Even if this function fails, the buffer belongs to the caller until
  // release().
  Status take(const device::Location& location, std::size_t bytes, Statistics& statistics,
              StagingBuffer** buffer);
  void release(StagingBuffer* buffer);

 private:
  StagingBuffer* pick(const device::Location& location, std::size_t bytes);

  std::mutex mutex_;                                  // protects both members below
  std::vector<std::unique_ptr<StagingBuffer>> made_;  // all of them
  std::vector<StagingBuffer*> free_;                  // the buffers that no call uses
};

// Drops the stream and the memory of a buffer whose stream has failed. A failed stream never works
// again, and a copy that it has begun may still write to the memory.
void drop_if_failed(StagingBuffer& buffer) {
  bool reached = false;
  const device::Device& device = *buffer.location.device;
  if (buffer.stream == nullptr || device.query(buffer.stream, 0, &reached) == Status::ok) return;
  device.close_stream(buffer.stream);
  buffer.stream = nullptr;
  buffer.memory.release();
}

Status StagingPool::take(const device::Location& location, std::size_t bytes,
                         Statistics& statistics, StagingBuffer** buffer) {
  *buffer = pick(location, bytes);
  drop_if_failed(**buffer);
  if ((*buffer)->stream == nullptr) {
    (*buffer)->location = location;
    SLIMPI_TRY(location.device->open_stream(location, &(*buffer)->stream));
  }
  comm::Memory& memory = (*buffer)->memory;
  if (bytes <= memory.size()) return Status::ok;
  if (memory.reserve(location, device::Place::staging, bytes, statistics) == Status::ok)
    return Status::ok;
  // Ordinary host memory is a substitute, with slower copies to and from a GPU.
  return memory.reserve({}, device::Place::device, bytes, statistics);
}

void StagingPool::release(StagingBuffer* buffer) {
  const std::lock_guard lock(mutex_);
  free_.push_back(buffer);
}

// Returns the smallest free buffer that fits, or else the largest free one, or else a new one.
StagingBuffer* StagingPool::pick(const device::Location& location, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  auto best = free_.end();
  const auto better = [&](const StagingBuffer& buffer, const StagingBuffer& than) {
    const bool fits = buffer.memory.size() >= bytes, other_fits = than.memory.size() >= bytes;
    if (fits != other_fits) return fits;
    return fits == (buffer.memory.size() < than.memory.size());
  };
  for (auto buffer = free_.begin(); buffer != free_.end(); ++buffer)
    if ((*buffer)->location == location && (best == free_.end() || better(**buffer, **best)))
      best = buffer;
  if (best == free_.end()) {
    made_.push_back(std::make_unique<StagingBuffer>());
    free_.reserve(made_.size());  // so that release() allocates nothing
    return made_.back().get();
  }
  StagingBuffer* const found = *best;
  free_.erase(best);
  return found;
}

// Finds the bytes that `count` elements of a type span (none if count is 0). Returns false if the
// elements have no bytes, or if MPI will reject the call.
bool find_span(const mpi::Api& api, mpi::Datatype type, std::int64_t count, Span* span) {
  if (count < 0 || type == mpi::abi.datatype_null) return false;
  if (count == 0) return true;
  mpi::Aint low = 0, extent = 0, true_low = 0, true_extent = 0;
  mpi::Count size = 0;
  if (api.Type_get_extent(type, &low, &extent) != mpi::kSuccess ||
      api.Type_get_true_extent(type, &true_low, &true_extent) != mpi::kSuccess ||
      api.Type_size_x(type, &size) != mpi::kSuccess)
    return false;
  // With a negative extent, the last element begins before the first.
  const std::ptrdiff_t last = std::ptrdiff_t(count - 1) * extent;
  span->low = true_low + (last < 0 ? last : 0);
  span->bytes = std::size_t((last < 0 ? -last : last) + true_extent);
  span->gaps = size != true_extent || (count > 1 && extent != true_extent);
  return span->bytes != 0;
}

// Returns where the last block of an all-gather ends, in elements from the start of the output. If
// a block begins before the output, returns a negative number, which find_span() rejects.
std::int64_t end_of_blocks(const Request& request, int ranks) {
  std::int64_t end = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t place = request.blocks.place_of(rank);
    if (place < 0) return -1;
    end = std::max(end, place + request.blocks.of(rank));
  }
  return end;
}

}  // namespace

CallBuffer::CallBuffer(const void* program, const Span& span)
    : program_(static_cast<const std::byte*>(program)),
      span_(span),
      location_(program == mpi::abi.in_place || span.bytes == 0 ? Location()
                                                                : device::locate(begin())) {}

CallBuffer::~CallBuffer() {
  if (buffer_ != nullptr) StagingPool::all().release(buffer_);
}

bool CallBuffer::needs_copy() const {
  return !device::mpi_takes(*location_.device);
}

Status CallBuffer::open(Statistics& statistics) {
  SLIMPI_TRY(StagingPool::all().take(location_, span_.bytes + kAlignment, statistics, &buffer_));
  copy_ = buffer_->memory.data() + reinterpret_cast<std::uintptr_t>(begin()) % kAlignment;
  return Status::ok;
}

void* CallBuffer::pointer() const {
  const auto address = reinterpret_cast<std::uintptr_t>(buffer_ == nullptr ? begin() : copy_);
  return reinterpret_cast<void*>(address - std::uintptr_t(span_.low));
}

Status CallBuffer::move(const char* name, std::byte* to, const std::byte* from) {
  return comm::copy_and_wait({*buffer_->location.device, buffer_->stream}, name, to, from,
                             span_.bytes);
}

StagedCall::StagedCall(Runtime& runtime, const Request& request, const Spans& spans)
    : runtime_(runtime),
      copy_(request),
      spans_(spans),
      in_place_(request.in == mpi::abi.in_place),
      aliased_(request.in == request.out),
      in_(request.in, spans.in),
      out_(request.out, spans.out),
      copies_in_(spans.valid && !aliased_ && in_.needs_copy()),
      copies_out_(spans.valid && out_.needs_copy()) {}

StagedCall::Spans StagedCall::measure(const Request& request) {
  if (request.comm == mpi::abi.comm_null) return {};
  const mpi::Api& api = Runtime::started()->api;
  // A call with blocks may have been left to MPI before count_blocks() (entry.h) set its counts, so
  // they are set here, in a copy of the request.
  Request measured = request;
  const int ranks = ranks_with_blocks(api, request);
  if (request.collective != Collective::allreduce) {
    int rank = 0;
    api.Comm_rank(request.comm, &rank);
    count_blocks(measured, rank, ranks);
  }
  const bool in_place = request.in == mpi::abi.in_place;
  Spans found;
  const auto type = request.datatype;
  if (request.gathers()) {
    // The output is copied in, too, so that the bytes between blocks stay as they are.
    found.valid =
        measured.count > 0 && find_span(api, type, end_of_blocks(measured, ranks), &found.out) &&
        (in_place || find_span(api, request.sent.datatype, request.sent.count, &found.in));
    found.in.gaps = true;
    return found;
  }
  found.valid =
      measured.count > 0 && find_span(api, type, measured.count, &found.in) &&
      find_span(api, type, in_place ? measured.count : measured.result_count(), &found.out);
  return found;
}

Status StagedCall::open() {
  if (copies_out_) {
    SLIMPI_TRY(out_.open(runtime_.statistics));
    copy_.out = out_.pointer();
    if (aliased_) copy_.in = copy_.out;
  }
  if (copies_in_) {
    SLIMPI_TRY(in_.open(runtime_.statistics));
    copy_.in = in_.pointer();
  }
  return Status::ok;
}

Status StagedCall::bring_in() {
  // The output is copied in if it is also the input, or if there are bytes between its elements,
  // because bring_back() overwrites these bytes.
  if (copies_out_ && (in_place_ || aliased_ || spans_.in.gaps)) SLIMPI_TRY(out_.bring_in());
  return copies_in_ ? in_.bring_in() : Status::ok;
}

Status StagedCall::bring_back() {
  return copies_out_ ? out_.bring_back() : Status::ok;
}

void StagedCall::count() {
  runtime_.statistics.count(&Counts::staged_calls);
  log_once(LogLevel::info,
           "MPI does not take this process's device memory: sums that are left to it "
           "are copied through host memory");
}

}  // namespace slimpi::call
