// SPDX-License-Identifier: BSD-3-Clause
#include "intra/nccl_group.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <new>

#include "comm/waiter.h"
#include "kernels/kernels.h"
#include "observe/log.h"

namespace slimpi::intra {

namespace {

// How long the node-local ranks may take to create the communicator. It is long enough for a
// library that starts slowly, so only one that never finishes is given up.
constexpr auto kPatience = std::chrono::seconds(60);

// A communicator was given up because it never connected; so would the next one be.
std::atomic<bool> g_never_connects{false};

}  // namespace

// What a rank writes for its node-local ranks while they open. Only its owner writes it.
struct NcclGroup::Note {
  device::NcclTransport::UniqueId unique_id;  // written by local rank 0 only
  char bus_id[32];                            // of its GPU
  char reason[160];                           // why this rank failed
  std::atomic<std::uint32_t> failed;          // read at any time by ranks that wait for NCCL
};

NcclGroup::Note& NcclGroup::note_of(NodeBarrier& shared, int local) {
  static_assert(sizeof(Note) <= NodeSegment::kNoteBytes);
  return *reinterpret_cast<Note*>(shared.segment().note(local));
}

// Asks no other rank: the answer goes into the word that each rank publishes before the call's
// first barrier, and the ranks use nccl only if all published the same.
NcclGroup::Readiness NcclGroup::readiness(const device::Location& location) const {
  if (intra_ == Intra::shm || refused_ || !location.device->staged) return unavailable;
  if (!location_) return not_open;
  // The communicator belongs to one GPU, and to its memory since the last reset.
  return *location_ == location ? ready : unavailable;
}

Status NcclGroup::open(NodeBarrier& shared, comm::Exchange& exchange,
                       const device::Location& location, Statistics& statistics, bool* opened) {
  std::string reason;
  SLIMPI_TRY(try_to_open(shared, exchange, location, statistics, opened, &reason));
  if (*opened) {
    location_ = location;
    log_once(LogLevel::info, std::string("the ranks of a node exchange device buffers by ") +
                                 device_->nccl->library);
    return Status::ok;
  }
  if (intra_ == Intra::nccl)
    return fail(Status::unsupported,
                "SLIMPI_INTRA=nccl cannot be used here: " + reason + "; accepted: auto, shm, mpi");
  // For good: every later call would pay for the same failure.
  refused_ = true;
  log_once(LogLevel::info, "NCCL is not used inside the node: " + reason +
                               "; device buffers pass through host memory");
  return Status::ok;
}

Status NcclGroup::find_gpu(const device::Location& location, Note& mine) {
  if (device_->nccl == nullptr || device_->bus_id == nullptr)
    return fail(Status::unsupported, std::string(device_->name) + " memory cannot be sent by NCCL");
  return device_->bus_id(location, mine.bus_id, sizeof mine.bus_id);
}

Status NcclGroup::prepare(const device::Location& location, int size, Statistics& statistics) {
  if (g_never_connects)
    return fail(Status::device, "NCCL has not connected the GPUs of a node before");
  SLIMPI_TRY(device_->nccl->usable(location));
  block_ = piece(size) * std::uint64_t(size);
  // One kernel adds up to kMaxAddends; of more, there are sums of pairs, half as many as ranks.
  const std::uint64_t sums = size <= kernels::kMaxAddends ? piece(size) : block_;
  return scratch_.reserve(location, device::Place::device, (kDepth * block_ + sums) * sizeof(float),
                          statistics);
}

// Ends when this rank has joined, where a node-local rank has failed, or after a long wait.
Status NcclGroup::create_communicator(NodeBarrier& shared, comm::Exchange& exchange,
                                      const device::Location& location) {
  SLIMPI_TRY(device_->nccl->create_communicator(
      location, note_of(shared, 0).unique_id, shared.local_rank(), shared.size(), &communicator_));
  const auto end = std::chrono::steady_clock::now() + kPatience;
  return comm::wait_until(comm::Waiter::Poll::device, &exchange, [&](bool* joined) {
    SLIMPI_TRY(device_->nccl->ready(communicator_, joined));
    if (*joined) return Status::ok;
    for (int one = 0; one < shared.size(); ++one)
      if (note_of(shared, one).failed.load(std::memory_order_relaxed) != 0)
        return fail(Status::device, "");  // the failed rank has the reason
    if (std::chrono::steady_clock::now() < end) return Status::ok;
    g_never_connects = true;
    return fail(Status::device, "NCCL has not connected the GPUs of a node in time");
  });
}

// Where *opened is false, *reason is the same on all node-local ranks.
Status NcclGroup::try_to_open(NodeBarrier& shared, comm::Exchange& exchange,
                              const device::Location& location, Statistics& statistics,
                              bool* opened, std::string* reason) {
  const int me = shared.local_rank(), size = shared.size();
  device_ = location.device;
  Note& mine = *new (&note_of(shared, me)) Note{};
  reason->clear();
  // `status`: of a step on this rank. *opened: it went well on all; else *reason is the first
  // rank's that has one.
  const auto agree = [&](Status status) {
    *opened = status == Status::ok;
    if (!*opened) {
      failure_text().copy(mine.reason, sizeof mine.reason - 1);
      mine.failed.store(1, std::memory_order_relaxed);
    }
    SLIMPI_TRY(shared.all_true(exchange, opened));
    for (int one = 0; !*opened && reason->empty() && one < size; ++one)
      *reason = note_of(shared, one).reason;
    return Status::ok;
  };

  SLIMPI_TRY(agree(find_gpu(location, mine)));
  // NCCL allows no two ranks on one GPU. All ranks see the same ids, so all make the same decision.
  for (int one = 0; *opened && one < size; ++one)
    for (int other = 0; other < one; ++other)
      if (std::strcmp(note_of(shared, one).bus_id, note_of(shared, other).bus_id) == 0) {
        *opened = false;
        *reason = std::string("two ranks use the GPU ") + note_of(shared, one).bus_id;
      }
  // Only now is the library loaded, which is large.
  if (*opened) SLIMPI_TRY(agree(prepare(location, size, statistics)));
  if (*opened)
    SLIMPI_TRY(
        agree(me != 0 ? Status::ok : device_->nccl->make_unique_id(location, &mine.unique_id)));
  if (*opened) SLIMPI_TRY(agree(create_communicator(shared, exchange, location)));
  if (*opened) return Status::ok;
  close(false);
  scratch_.release();
  return shared.barrier(exchange);  // after it all ranks have read the notes
}

// Not in order, NCCL aborts: it waits for no rank.
void NcclGroup::close(bool in_order) {
  if (communicator_ != nullptr) device_->nccl->close(communicator_, in_order);
  communicator_ = nullptr;
}

Status NcclGroup::send(comm::Exchange& exchange,
                       std::span<const device::NcclTransport::Transfer> transfers,
                       device::Stream* stream) {
  SLIMPI_TRY(
      device_->nccl->exchange(communicator_, transfers.data(), int(transfers.size()), stream));
  // A group of transfers may return before it is queued: NCCL connects two ranks at their first
  // transfer.
  return comm::wait_until(comm::Waiter::Poll::device, &exchange, [&](bool* settled) {
    return device_->nccl->ready(communicator_, settled);
  });
}

// MPI makes progress while the GPU works: a node-local rank may wait for a message from this rank
// before it queues its sends.
Status NcclGroup::wait(comm::Exchange& exchange, device::Stream* stream) {
  std::uint64_t event = 0;
  SLIMPI_TRY(device_->record(stream, &event));
  // ready() reports an error of the transfers, after which the event would never come.
  return comm::wait_until(comm::Waiter::Poll::device, &exchange, [&](bool* done) {
    SLIMPI_TRY(device_->query(stream, event, done));
    bool settled = false;
    return *done ? Status::ok : device_->nccl->ready(communicator_, &settled);
  });
}

}  // namespace slimpi::intra
