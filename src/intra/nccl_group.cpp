// SPDX-License-Identifier: BSD-3-Clause
#include "intra/nccl_group.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <new>

#include "comm/waiter.h"
#include "kernels/kernels.h"

namespace slimpi::intra {

namespace {

// How long the node-local ranks may take to create the communicator. It is long enough for a
// library that starts slowly, so only one that never finishes is given up.
constexpr auto kPatience = std::chrono::seconds(60);

// The steps of opening, in this order. A rank may fail in one step while another still reads the
// result of the step before; so a failure carries its step.
enum Step : std::uint32_t {
  finding_gpu = 1,
  preparing = 2,
  exchanging_id = 3,
  creating_communicator = 4
};

// A communicator was given up because it never connected; so would the next one be.
std::atomic<bool> g_never_connects{false};

}  // namespace

// What a rank publishes to its node-local ranks while they open. Only its owner writes it.
struct NcclGroup::Note {
  device::NcclTransport::UniqueId unique_id;  // written by local rank 0 only
  char bus_id[32];                            // of its GPU
  char reason[160];                           // why this rank failed
  std::atomic<std::uint32_t> failed,
      joined;  // failed: the step, or 0; joined: 1 when its communicator exists

  void fail(Step step, bool publish = true) {
    if (publish) std::strncpy(reason, failure_text().c_str(), sizeof reason - 1);
    // After the text: a rank that sees `failed` may read `reason`.
    failed.store(step, std::memory_order_release);
  }
};

NcclGroup::Note& NcclGroup::note_of(NodeBarrier& shared, int local) {
  static_assert(sizeof(Note) <= NodeSegment::kNoteBytes);
  return *reinterpret_cast<Note*>(shared.segment().note(local));
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

// Every rank stops by itself: its communicator exists, it failed, it saw a node-local rank fail, or
// it waited too long. When all have stopped, every rank returns.
Status NcclGroup::create_communicator(NodeBarrier& shared, comm::Exchange& exchange,
                                      const device::Location& location) {
  const int me = shared.local_rank(), size = shared.size();
  Note& mine = note_of(shared, me);
  if (device_->nccl->create_communicator(location, note_of(shared, 0).unique_id, me, size,
                                         &communicator_) != Status::ok)
    mine.fail(creating_communicator);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (comm::Waiter waiter(comm::Waiter::Poll::device, &exchange);;) {
    int here = 0, failures = 0;
    for (int one = 0; one < size; ++one) {
      const Note& theirs = note_of(shared, one);
      here += theirs.joined.load(std::memory_order_acquire) != 0 ? 1 : 0;
      failures += theirs.failed.load(std::memory_order_acquire) != 0 ? 1 : 0;
    }
    // Every rank has joined or failed, and no note changes any more.
    if (here + failures == size) return Status::ok;
    if (mine.joined == 0 && mine.failed == 0) {
      bool settled = false;
      if (device_->nccl->ready(communicator_, &settled) != Status::ok) {
        mine.fail(creating_communicator);
      } else if (settled) {
        mine.joined.store(1, std::memory_order_release);
      } else if (failures != 0) {
        mine.fail(creating_communicator, false);
      } else if (std::chrono::steady_clock::now() > end) {
        (void)fail(Status::device, "NCCL has not connected the GPUs of a node in time");
        g_never_connects = true;
        mine.fail(creating_communicator);
      }
    }
    SLIMPI_TRY(waiter.pause());
  }
}

Status NcclGroup::open(NodeBarrier& shared, comm::Exchange& exchange,
                       const device::Location& location, Statistics& statistics, bool* opened,
                       std::string* reason) {
  const int me = shared.local_rank(), size = shared.size();
  device_ = location.device;
  Note& mine = *new (&note_of(shared, me)) Note{};
  // A barrier. If any rank has failed in `step` or before, *opened becomes false, and *reason is
  // the first rank's that has one.
  const auto end = [&](Step step) {
    SLIMPI_TRY(shared.barrier(exchange));
    for (int one = 0; one < size; ++one) {
      const Note& theirs = note_of(shared, one);
      const std::uint32_t failed = theirs.failed.load(std::memory_order_acquire);
      if (failed == 0 || failed > step) continue;
      *opened = false;
      if (reason->empty()) *reason = theirs.reason;
    }
    return Status::ok;
  };

  *opened = true;
  reason->clear();
  if (find_gpu(location, mine) != Status::ok) mine.fail(finding_gpu);
  SLIMPI_TRY(end(finding_gpu));
  // NCCL allows no two ranks on one GPU. All ranks see the same ids, so all decide alike.
  for (int one = 0; *opened && one < size; ++one)
    for (int other = 0; other < one; ++other)
      if (std::strcmp(note_of(shared, one).bus_id, note_of(shared, other).bus_id) == 0) {
        *opened = false;
        *reason = std::string("two ranks use the GPU ") + note_of(shared, one).bus_id;
      }
  // Only now is the library loaded, which is large.
  if (*opened) {
    if (prepare(location, size, statistics) != Status::ok) mine.fail(preparing);
    SLIMPI_TRY(end(preparing));
  }
  if (*opened) {
    if (me == 0 && device_->nccl->make_unique_id(location, &mine.unique_id) != Status::ok)
      mine.fail(exchanging_id);
    SLIMPI_TRY(end(exchanging_id));
  }
  if (*opened) {
    SLIMPI_TRY(create_communicator(shared, exchange, location));
    SLIMPI_TRY(end(creating_communicator));
  }
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
                       std::span<const device::NcclTransport::Transfer> pieces,
                       device::Stream* stream) {
  SLIMPI_TRY(device_->nccl->exchange(communicator_, pieces.data(), int(pieces.size()), stream));
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
  SLIMPI_TRY(device_->record_for_poll(stream, &event));
  // ready() reports an error of the transfers, after which the event would never come.
  return comm::wait_until(comm::Waiter::Poll::device, &exchange, [&](bool* done) {
    SLIMPI_TRY(device_->query(stream, event, done));
    bool settled = false;
    return *done ? Status::ok : device_->nccl->ready(communicator_, &settled);
  });
}

}  // namespace slimpi::intra
