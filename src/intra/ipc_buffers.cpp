// SPDX-License-Identifier: BSD-3-Clause
#include "intra/ipc_buffers.h"

#include <cstring>
#include <new>

namespace slimpi::intra {

namespace {

constexpr std::size_t kBytes = (BufferRing::kDepth + 1) * IpcBuffers::kBlock * sizeof(float);

// What a rank writes for its node-local ranks while they open the message buffers.
using Handle = device::Ipc::Handle;
static_assert(sizeof(Handle) <= NodeSegment::kNoteBytes);

Handle& handle_of(NodeBarrier& shared, int local) {
  return *reinterpret_cast<Handle*>(shared.segment().note(local));
}

}  // namespace

Status IpcBuffers::offer(const device::Location& location, Statistics& statistics,
                         device::Ipc::Handle* handle) {
  SLIMPI_TRY(memory_.reserve(location, device::Place::device, kBytes, statistics));
  return location.device->ipc->offer(memory_.data(), handle);
}

Status IpcBuffers::open(NodeBarrier& shared, comm::Exchange& exchange,
                        const device::Location& location, Statistics& statistics, bool* opened,
                        std::string* reason) {
  me_ = shared.local_rank();
  const int size = shared.size();
  // The page may hold the note of NCCL's opening, which all ranks have read before its last
  // barrier.
  bool good = offer(location, statistics, new (&handle_of(shared, me_)) Handle{}) == Status::ok;
  *reason = good ? "" : failure_text();
  SLIMPI_TRY(shared.all_true(exchange, &good));

  // Where one has no memory, no rank opens anything.
  device_ = location.device;
  buffers_.assign(std::size_t(size), nullptr);
  buffers_[std::size_t(me_)] = memory_.data();
  for (int one = 0; good && one < size; ++one) {
    if (one == me_) continue;
    void* theirs = nullptr;
    good = device_->ipc->open(location, handle_of(shared, one), &theirs) == Status::ok;
    if (!good) *reason = failure_text();
    buffers_[std::size_t(one)] = static_cast<std::byte*>(theirs);
  }
  // Opening may fail on some ranks only, for example between GPUs without a path to each other.
  SLIMPI_TRY(shared.all_true(exchange, &good));
  *opened = good;
  if (good) return Status::ok;
  // First all unmap, then each frees: memory that another process maps must not be freed.
  close();
  SLIMPI_TRY(shared.barrier(exchange));  // after it no rank maps this one's memory
  memory_.release();
  return Status::ok;
}

// Other processes may still map this rank's memory, which therefore stays.
void IpcBuffers::close() {
  for (std::size_t one = 0; one < buffers_.size(); ++one)
    if (buffers_[one] != nullptr && int(one) != me_) device_->ipc->close(buffers_[one]);
  buffers_.clear();
  device_ = nullptr;
}

}  // namespace slimpi::intra
