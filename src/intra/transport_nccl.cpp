// SPDX-License-Identifier: BSD-3-Clause
// The nccl transport: exchange inside a node by NCCL, from GPU to GPU. The node-local ranks send
// their values of a shard to its owner, directly from the program's buffers and block by block, so
// the owner adds a block while it receives the next one. Later each owner sends its finished shard
// to all ranks in one group of transfers. All work is queued on two streams, NCCL's and the call's,
// which wait for each other by events. The second half of this file defines the class NcclGroup.
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory_resource>
#include <new>
#include <vector>

#include "base/exceptions.h"
#include "comm/stream_wait.h"
#include "comm/waiter.h"
#include "intra/nccl_group.h"
#include "intra/node_pass.h"
#include "intra/node_state.h"
#include "intra/ordered_sum.h"
#include "intra/transports.h"
#include "kernels/kernels.h"
#include "observe/log.h"

namespace slimpi::intra {

namespace {

using device::NcclTransport;

class NcclPass : NodePass {
 public:
  NcclPass(comm::Call& call, const comm::InterNodeGroup& group)
      : NodePass(call, group),
        nccl_(*shared_of(call.communicator)->segment().nccl),
        transfers_(&call.scratch.objects) {
    // NcclGroup::piece() is a multiple of 64 floats, so a shard's part of each block begins at a
    // multiple of 64 floats from the shard's beginning, as kernels need it.
    blocks_.divide(NcclGroup::piece(size_));
  }

  Status sum() {
    return settle(caught([&] { return run_sum(false); }), nccl_);
  }
  Status share() {
    return settle(caught([&] { return run_share(); }), nccl_);
  }
  Status allreduce() {
    const auto both = [&] {
      SLIMPI_TRY(run_sum(true));
      return run_share();
    };
    // One settle() serves both steps: if one rank fails in the sum, the waits of the others fail.
    return settle(caught(both), nccl_);
  }

 private:
  Status run_sum(bool pairwise);
  Status run_share();
  Status find_stream();
  Status finish();
  Status transfer(std::uint64_t block);
  Status reduce(std::uint64_t block, bool pairwise);
  bool owner() const { return group_.shard_index >= 0; }
  // Returns the memory that receives a block from `other`. Block b + kDepth overwrites block b.
  float* arrived(int other, std::uint64_t block) const {
    return nccl_.arrived(int(block % NcclGroup::kDepth)) + std::uint64_t(other) * blocks_.piece();
  }
  void add_out(int local, const float* from, std::uint64_t count) {
    if (count != 0) transfers_.push_back({local, from, nullptr, count * sizeof(float)});
  }
  void add_in(int local, float* to, std::uint64_t count) {
    if (count != 0) transfers_.push_back({local, nullptr, to, count * sizeof(float)});
  }
  Status send() {
    // NCCL starts all transfers of a group together, so the order of transfers to and from
    // different ranks does not matter.
    const Status sent = nccl_.send(exchange_, transfers_, nccl_stream_);
    transfers_.clear();
    return sent;
  }

  NcclGroup& nccl_;
  std::pmr::vector<NcclTransport::Transfer> transfers_;
  device::Stream* nccl_stream_ = nullptr;
  // Events of the call's stream, by the number of a block modulo kDepth. Each is complete once the
  // block was added.
  std::uint64_t added_[NcclGroup::kDepth] = {};
};

// Finds the stream for NCCL, which is the communicator's stream for copies to the GPU, and waits
// until the stream is idle, because only the first work after that waits for the work that the
// program has queued on its default stream (Device::open_stream).
Status NcclPass::find_stream() {
  SLIMPI_TRY(call_.communicator.stream_for(call_.location, &nccl_stream_, comm::StreamRole::h2d));
  SLIMPI_TRY(nccl_.wait(exchange_, nccl_stream_));
  return comm::hold_up(call_.device, nccl_stream_, call_.stream);
}

// Waits until both streams are idle. Work that is queued on a stream waits for the program's
// default stream only if the stream was idle, so this makes the next call wait for what the program
// queues there until then.
Status NcclPass::finish() {
  SLIMPI_TRY(nccl_.wait(exchange_, nccl_stream_));
  return nccl_.wait(exchange_, call_.stream);
}

// Queues the sends and receives of a block. The receives first wait until block - kDepth was added,
// because its values are in the same memory.
Status NcclPass::transfer(std::uint64_t block) {
  const int index = int(block % NcclGroup::kDepth);
  if (owner() && block >= NcclGroup::kDepth)
    SLIMPI_TRY(call_.device.wait_event(nccl_stream_, call_.stream, added_[index]));
  SLIMPI_TRY(for_others(block, [&](int local, int, const comm::Range& theirs) {
    add_out(local, call_.in + theirs.first, theirs.count);
    return Status::ok;
  }));
  for (int other = 0; owner() && other < size_; ++other)
    if (other != me_) add_in(other, arrived(other, block), own(block).count);
  return send();
}

// Queues the owner's additions of a block after its receives, then an event after which the memory
// of the block is free again.
Status NcclPass::reduce(std::uint64_t block, bool pairwise) {
  const comm::Range mine = own(block);
  if (mine.count == 0) return Status::ok;
  // The additions wait on the GPU for the receives, while the host queues the next block.
  SLIMPI_TRY(comm::hold_up(call_.device, call_.stream, nccl_stream_));
  std::pmr::vector<const float*> addends(&call_.scratch.objects);
  for (int other = 0; other < size_; ++other)
    addends.push_back(other == me_ ? call_.in + mine.first : arrived(other, block));
  float* const out = call_.out + mine.first;
  if (pairwise)
    add_in_pairs(call_.device_stream(), addends, mine.count, nccl_.partial(), blocks_.piece(), out);
  else
    add_in_order(call_.device_stream(), call_.plan.format, addends, mine.count, nccl_.partial(),
                 out);
  return call_.device.record(call_.stream, &added_[block % NcclGroup::kDepth]);
}

Status NcclPass::run_sum(bool pairwise) {
  SLIMPI_TRY(find_stream());
  for (std::uint64_t block = 0; block < blocks_.blocks(); ++block) {
    SLIMPI_TRY(transfer(block));
    SLIMPI_TRY(reduce(block, pairwise));
  }
  return finish();
}

Status NcclPass::run_share() {
  SLIMPI_TRY(find_stream());
  const comm::Range mine =
      owner() ? blocks_.shards()[std::size_t(group_.shard_index)] : comm::Range{};
  for (int other = 0; other < size_; ++other)
    if (other != me_) add_out(other, call_.out + mine.first, mine.count);
  for (int shard_index = 0; shard_index < group_.shards; ++shard_index)
    if (const comm::Range& theirs = blocks_.shards()[std::size_t(shard_index)];
        shard_index != group_.shard_index)
      add_in(group_.owner(shard_index), call_.out + theirs.first, theirs.count);
  SLIMPI_TRY(send());
  return finish();
}

}  // namespace

Status reduce_scatter_by_nccl(comm::Call& call, const comm::InterNodeGroup& group) {
  return NcclPass(call, group).sum();
}

Status all_gather_by_nccl(comm::Call& call, const comm::InterNodeGroup& group) {
  return NcclPass(call, group).share();
}

Status allreduce_by_nccl(comm::Call& call, const comm::InterNodeGroup& group) {
  return NcclPass(call, group).allreduce();
}

namespace {

// How long the node-local ranks may take to create the communicator: long enough for a library that
// starts slowly, so that only a communicator that never connects is given up.
constexpr auto kPatience = std::chrono::seconds(60);

// Set once this process has given up an NCCL communicator that never connected, because a later one
// would not connect either.
std::atomic<bool> g_never_connects{false};

}  // namespace

// The note that one rank writes, and its node-local ranks read, while they open NCCL.
struct NcclGroup::Note {
  device::NcclTransport::UniqueId unique_id;  // written by local rank 0 only
  char bus_id[32];                            // the PCI bus id of the rank's GPU
  char reason[160];                           // why this rank failed
  std::atomic<std::uint32_t> failed;          // read at any time by ranks that wait for NCCL
};

NcclGroup::Note& NcclGroup::note_of(NodeBarrier& shared, int local) {
  static_assert(sizeof(Note) <= NodeSegment::kNoteBytes);
  return *reinterpret_cast<Note*>(shared.segment().note(local));
}

// Decides from what this rank alone knows. Before the call's first barrier, each rank publishes the
// result as a field of its word (transports.h). The ranks use NCCL if all published `ready`, try to
// open it first if all published `not_open`, and use shm otherwise.
NcclGroup::Readiness NcclGroup::readiness(const device::Location& location) const {
  if (intra_ == Intra::shm || refused_ || !location.device->staged) return unavailable;
  if (!location_) return not_open;
  // The NCCL communicator belongs to one GPU, and is useless once the program has reset that GPU
  // (Location::generation).
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
  // NCCL is not tried again, because every later call would pay for the same failure.
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
  // One kernel adds the values of up to kMaxAddends ranks. With more ranks, the sums of pairs need
  // memory.
  const std::uint64_t sums = size <= kernels::kMaxAddends ? piece(size) : block_;
  return scratch_.reserve(location, device::Place::device, (kDepth * block_ + sums) * sizeof(float),
                          statistics);
}

// Creates the communicator. Returns when this rank has joined, when a node-local rank has failed,
// or after kPatience.
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

// Runs the steps of open(). If *opened is false, *reason is the same on all node-local ranks.
Status NcclGroup::try_to_open(NodeBarrier& shared, comm::Exchange& exchange,
                              const device::Location& location, Statistics& statistics,
                              bool* opened, std::string* reason) {
  const int me = shared.local_rank(), size = shared.size();
  device_ = location.device;
  Note& mine = *new (&note_of(shared, me)) Note{};
  reason->clear();
  // Sets *opened to whether a step succeeded on all ranks, where `status` is its result on this
  // rank. After a failure, sets *reason to the reason of the first rank that gives one.
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
  // NCCL does not allow two ranks on one GPU. All ranks see the same ids, so all decide in the same
  // way.
  for (int one = 0; *opened && one < size; ++one)
    for (int other = 0; other < one; ++other)
      if (std::strcmp(note_of(shared, one).bus_id, note_of(shared, other).bus_id) == 0) {
        *opened = false;
        *reason = std::string("two ranks use the GPU ") + note_of(shared, one).bus_id;
      }
  // The library is loaded only now, because it is large.
  if (*opened) SLIMPI_TRY(agree(prepare(location, size, statistics)));
  if (*opened)
    SLIMPI_TRY(
        agree(me != 0 ? Status::ok : device_->nccl->make_unique_id(location, &mine.unique_id)));
  if (*opened) SLIMPI_TRY(agree(create_communicator(shared, exchange, location)));
  if (*opened) return Status::ok;
  abort();
  scratch_.release();
  return shared.barrier(exchange);  // then all ranks have read the notes
}

void NcclGroup::end(bool in_order) {
  if (communicator_ != nullptr) device_->nccl->close(communicator_, in_order);
  communicator_ = nullptr;
}

Status NcclGroup::send(comm::Exchange& exchange,
                       std::span<const device::NcclTransport::Transfer> transfers,
                       device::Stream* stream) {
  SLIMPI_TRY(
      device_->nccl->exchange(communicator_, transfers.data(), int(transfers.size()), stream));
  // Waits until the transfers are on the stream, so that an event can be recorded after them.
  // NCCL's own call may return earlier, because NCCL connects two ranks at their first transfer.
  return comm::wait_until(comm::Waiter::Poll::device, &exchange, [&](bool* settled) {
    return device_->nccl->ready(communicator_, settled);
  });
}

// Waits for the stream and calls MPI meanwhile, because a node-local rank may need an MPI message
// from this rank before it queues its NCCL sends.
Status NcclGroup::wait(comm::Exchange& exchange, device::Stream* stream) {
  std::uint64_t event = 0;
  SLIMPI_TRY(device_->record(stream, &event));
  // ready() is called only for its status, which reports a failure of the transfers. After one, the
  // event would never be reached.
  return comm::wait_until(comm::Waiter::Poll::device, &exchange, [&](bool* done) {
    SLIMPI_TRY(device_->query(stream, event, done));
    bool settled = false;
    return *done ? Status::ok : device_->nccl->ready(communicator_, &settled);
  });
}

}  // namespace slimpi::intra
