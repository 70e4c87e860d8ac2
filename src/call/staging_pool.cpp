// SPDX-License-Identifier: BSD-3-Clause
#include "call/staging_pool.h"

namespace slimpi::call {

namespace {

// A stream that has failed once fails for good, and copies into the memory may still run.
void drop_if_failed(StagingBuffer& buffer) {
  bool reached = false;
  const device::Device& device = *buffer.location.device;
  if (buffer.stream == nullptr || device.query(buffer.stream, 0, &reached) == Status::ok) return;
  device.close_stream(buffer.stream);
  buffer.stream = nullptr;
  buffer.memory.release();
}

}  // namespace

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
  // Slower, but otherwise equal.
  return memory.reserve({}, device::Place::device, bytes, statistics);
}

void StagingPool::release(StagingBuffer* buffer) {
  const std::lock_guard lock(mutex_);
  free_.push_back(buffer);
}

// The smallest free one that fits, else the largest free one, else a new one.
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

}  // namespace slimpi::call
