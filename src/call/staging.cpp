// SPDX-License-Identifier: BSD-3-Clause
#include "call/staging.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "base/exceptions.h"
#include "call/arguments.h"
#include "comm/stream_wait.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {

using device::Location;

constexpr std::size_t kAlignment = 256;  // buffer and copy have equal addresses modulo this

// Keeps the staging buffers of finished calls, so that later calls can reuse them. All functions
// are thread-safe.
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

// Finds the layout of a type, and the bytes that `count` elements span (none if count is 0).
// Returns false if the elements have no bytes, or if MPI will reject the call.
bool find_span(const mpi::Api& api, mpi::Datatype type, std::int64_t count, ElementLayout* layout,
               Span* span) {
  if (count < 0 || type == mpi::abi.datatype_null) return false;
  if (count == 0) return true;
  mpi::Aint low = 0;
  if (api.Type_get_extent(type, &low, &layout->extent) != mpi::kSuccess ||
      api.Type_get_true_extent(type, &layout->true_low, &layout->true_extent) != mpi::kSuccess ||
      api.Type_size_x(type, &layout->size) != mpi::kSuccess)
    return false;
  *span = layout->span({0, count});
  return span->bytes != 0;
}

// Finds which bytes of an element belong to it: makes MPI pack one whose bytes are all ones, and
// unpack it over zeros. Leaves *pieces empty if MPI cannot.
void find_pieces(const Request& request, const ElementLayout& layout, std::vector<Span>* pieces) {
  using Size = int(int, mpi::Datatype, mpi::Comm, int*);
  using Pack = int(const void*, int, mpi::Datatype, void*, int, int*, mpi::Comm);
  using Unpack = int(const void*, int, int*, void*, int, mpi::Datatype, mpi::Comm);
  auto* const size_of = reinterpret_cast<Size*>(mpi::next_definition("PMPI_Pack_size"));
  auto* const pack = reinterpret_cast<Pack*>(mpi::next_definition("PMPI_Pack"));
  auto* const unpack = reinterpret_cast<Unpack*>(mpi::next_definition("PMPI_Unpack"));
  int room = 0, end = 0, position = 0;
  if (size_of == nullptr || pack == nullptr || unpack == nullptr ||
      layout.size > std::numeric_limits<int>::max() / 2 ||
      size_of(1, request.datatype, request.comm, &room) != mpi::kSuccess)
    return;
  std::vector<std::byte> element(std::size_t(layout.true_extent), std::byte(255));
  std::vector<std::byte> packed{std::size_t(room)};
  std::byte* const address = element.data() - layout.true_low;
  if (pack(address, 1, request.datatype, packed.data(), room, &end, request.comm) != mpi::kSuccess)
    return;
  std::fill(element.begin(), element.end(), std::byte(0));
  if (unpack(packed.data(), end, &position, address, 1, request.datatype, request.comm) !=
      mpi::kSuccess)
    return;
  for (std::size_t i = 0; i < element.size(); ++i) {
    if (element[i] == std::byte(0)) continue;
    const std::ptrdiff_t low = layout.true_low + std::ptrdiff_t(i);
    if (i == 0 || element[i - 1] == std::byte(0)) pieces->push_back({low, 0});
    ++pieces->back().bytes;
  }
}

// Returns the number of elements from the output of an all-gather to the end of its last block, or
// a negative number, which find_span() rejects, if a block begins before the output.
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

Span ElementLayout::span(const Block& block) const {
  // With a negative extent, the last element begins before the first.
  const std::ptrdiff_t last = std::ptrdiff_t(block.count - 1) * extent;
  return {std::ptrdiff_t(block.first) * extent + true_low + std::min<std::ptrdiff_t>(last, 0),
          std::size_t(std::abs(last) + true_extent)};
}

bool ElementLayout::has_gaps(const Block& block) const {
  return size != true_extent || (block.count > 1 && extent != true_extent);
}

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

Status CallBuffer::bring_in() {
  return comm::copy_and_wait({*buffer_->location.device, buffer_->stream}, "copy out", copy_,
                             begin(), span_.bytes);
}

Status CallBuffer::bring_back(const std::vector<Span>& parts) {
  const device::DeviceStream on{*buffer_->location.device, buffer_->stream};
  std::size_t bytes = 0;
  for (const Span& part : parts) bytes += part.bytes;
  const Slice slice("copy in", bytes);
  for (const Span& part : parts)
    SLIMPI_TRY(on.device.copy(const_cast<std::byte*>(program_) + part.low,
                              copy_ + (part.low - span_.low), part.bytes, on.stream));
  return comm::synchronize(on);
}

StagedCall::StagedCall(Runtime& runtime, const Request& request, const Spans& spans)
    : runtime_(runtime),
      copy_(request),
      spans_(spans),
      in_place_(request.in == mpi::abi.in_place),
      aliased_(request.in == request.out),
      in_(request.in, spans_.in),
      out_(request.out, spans_.out),
      present_(request.out, spans_.out),
      copies_in_(spans_.valid && !aliased_ && in_.needs_copy()),
      copies_out_(spans_.valid && out_.needs_copy()) {}

StagedCall::Spans StagedCall::measure(const Request& request) {
  if (request.comm == mpi::abi.comm_null) return {};
  const mpi::Api& api = Runtime::started()->api;
  // A reduce-scatter or all-gather may have been left to MPI before count_blocks() (entry.h) set
  // its counts, so they are set here, in a copy of the request.
  Request measured = request;
  const bool in_place = request.in == mpi::abi.in_place;
  Spans found;
  if (request.collective != Collective::allreduce) {
    found.ranks = ranks_with_blocks(api, request);
    api.Comm_rank(request.comm, &found.rank);
    count_blocks(measured, found.rank, found.ranks);
  }
  const auto type = request.datatype;
  if (request.gathers()) {
    ElementLayout sent;
    found.valid =
        measured.count > 0 &&
        find_span(api, type, end_of_blocks(measured, found.ranks), &found.layout, &found.out) &&
        (in_place || find_span(api, request.sent.datatype, request.sent.count, &sent, &found.in));
  } else {
    found.valid = measured.count > 0 &&
                  find_span(api, type, measured.count, &found.layout, &found.in) &&
                  find_span(api, type, in_place ? measured.count : measured.result_count(),
                            &found.layout, &found.out);
  }
  return found;
}

// Finds the blocks of the result. The own block of an all-gather in place is only read.
void StagedCall::find_results() {
  const auto add = [&](const Block& block) {
    if (block.count == 0) return;
    if (!results_.empty() && results_.back().first + results_.back().count == block.first)
      results_.back().count += block.count;
    else
      results_.push_back(block);
  };
  const BlockCounts& blocks = copy_.blocks;
  switch (copy_.collective) {
    case Collective::allreduce:
      add({0, copy_.count});
      break;
    case Collective::reduce_scatter:
      add({0, blocks.of(spans_.rank)});
      break;
    case Collective::allgather:
      for (int rank = 0; rank < spans_.ranks; ++rank)
        if (rank != spans_.rank || !in_place_) add({blocks.place_of(rank), blocks.of(rank)});
      break;
  }
  for (const Block& block : results_) {
    parts_.push_back(spans_.layout.span(block));
    gaps_ = gaps_ || spans_.layout.has_gaps(block);
  }
}

Status StagedCall::open() {
  if (copies_out_) {
    find_results();
    SLIMPI_TRY(out_.open(runtime_.statistics));
    copy_.out = out_.pointer();
    if (aliased_) copy_.in = copy_.out;
    if (gaps_) SLIMPI_TRY(present_.open(runtime_.statistics));
  }
  if (copies_in_) {
    SLIMPI_TRY(in_.open(runtime_.statistics));
    copy_.in = in_.pointer();
  }
  return Status::ok;
}

Status StagedCall::bring_in() {
  // The output is copied in if it is also the input, or if there are bytes between its elements,
  // because bring_back() overwrites these bytes unless it knows where they are.
  if (copies_out_ && (in_place_ || aliased_ || gaps_)) SLIMPI_TRY(out_.bring_in());
  return copies_in_ ? in_.bring_in() : Status::ok;
}

void StagedCall::accepted() {
  if (copies_out_ && gaps_)
    (void)caught([&] { find_pieces(copy_, spans_.layout, &pieces_); });
}

// Between the elements, the program keeps what it has there now, which it may have written since
// the call began.
Status StagedCall::bring_back() {
  if (!copies_out_) return Status::ok;
  if (pieces_.empty()) return out_.bring_back(parts_);
  SLIMPI_TRY(present_.bring_in());
  merge();
  return present_.bring_back(parts_);
}

// Copies the elements of the result, without the bytes between them, to the copy of what the
// program has now.
void StagedCall::merge() {
  const auto* const from = static_cast<const std::byte*>(out_.pointer());
  auto* const to = static_cast<std::byte*>(present_.pointer());
  for (const Block& block : results_)
    for (std::int64_t i = block.first; i < block.first + block.count; ++i)
      for (const Span& piece : pieces_) {
        const std::ptrdiff_t place = std::ptrdiff_t(i) * spans_.layout.extent + piece.low;
        std::memcpy(to + place, from + place, piece.bytes);
      }
}

void StagedCall::count() {
  runtime_.statistics.count(&Counts::staged_calls);
  log_once(LogLevel::info,
           "MPI does not take this process's device memory: sums that are left to it "
           "are copied through host memory");
}

}  // namespace slimpi::call
