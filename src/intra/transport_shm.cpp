// SPDX-License-Identifier: BSD-3-Clause
// The shm transport: a pass through message buffers in host memory that the ranks of a node share.
//
// The vector passes in blocks. For each block: every rank copies into its message buffer what its
// node-local ranks own, and passes a barrier. Then every owner adds its shard from all message
// buffers. If the result is needed at once, the owner copies it into its own message buffer, from
// which the others copy it. Three blocks are in flight, so one barrier per block is enough: a
// message buffer is written again only after a barrier that every rank reached after reading it.
// While a rank writes a block, others read the two before it at most; while it writes the first
// block of a call, the last one of the call before.
#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <vector>

#include "base/exceptions.h"
#include "base/round_up.h"
#include "comm/stream_wait.h"
#include "intra/node_pass.h"
#include "intra/node_state.h"
#include "intra/ordered_sum.h"
#include "intra/transports.h"
#include "observe/activity.h"

namespace slimpi::intra {

namespace {

// Floats of one shard in a block of `block` floats. All shards together have no more than a block:
// opening a segment ensures that a block has kLeastPiece floats of each.
std::uint64_t piece_of(const comm::InterNodeGroup& group, std::uint64_t block) {
  return std::max(block / std::uint64_t(group.shards) / kLeastPiece * kLeastPiece, kLeastPiece);
}

class BlockPass : NodePass {
 public:
  BlockPass(comm::Call& call, const comm::InterNodeGroup& group);

  // The two passes of a hierarchical call, and the one of a call on one node; see transports.h.
  Status sum() {
    return settle(caught([&] { return run_sum(false); }));
  }
  Status share() {
    return settle(caught([&] { return run_share(); }));
  }
  Status allreduce() {
    return settle(caught([&] { return run_sum(true); }));
  }

 private:
  using Where = NodeCopies::Where;

  // The steps of the first barrier: each rank offers, by what its own buffers allow; then all know
  // each other's words, and agree.
  Status offer();
  Status agree();
  // The last step. Every rank has passed the same message buffers, so all agree on the next call's.
  void end() { ring().pass(message_buffers_, blocks_.blocks()); }
  Status settle(Status status);

  // Copies this rank's values of the others' shards into its message buffer of the block.
  Status copy_to_others(std::uint64_t block);
  // Copies this rank's sum of a block into its message buffer; the others fetch it after the next
  // barrier.
  Status copy_sum(std::uint64_t block);
  // Copies the other finished shards of a block into `out`.
  Status fetch(std::uint64_t block);
  Status add(std::uint64_t block, bool whole);
  // The node-local ranks' values of this rank's shard in a block, in rank order, in memory that the
  // kernels can read.
  Status find_addends(std::uint64_t block, std::pmr::vector<const float*>& addends);

  // Where a shard of a block lies in the message buffer of local rank `local`, the only one that
  // writes there.
  float* place(int local, int shard_index, std::uint64_t block) const {
    return shared_.segment().data(local) + message_buffers_.place(block) +
           std::uint64_t(shard_index) * blocks_.piece();
  }
  Status copy(float* to, const float* from, std::uint64_t count, Where where) {
    const Slice slice =
        node_slice(call_, where == Where::memory ? "node copy, non-temporal" : "node copy",
                   count * sizeof(float));
    return copies_.copy(to, from, count * sizeof(float), where);
  }
  // Waits for the copies and additions on the stream; then other ranks may see the message buffer.
  Status copied();
  Status barrier();

  // Scratch of additions; of this rank alone.
  float* scratch() const { return call_.scratch.sums.floats(); }
  // `whole`: the allreduce of one node, which adds in pairs, and shares each block when it is
  // added.
  Status run_sum(bool whole);
  Status run_share();
  std::string describe_sums() const;
  NcclGroup& nccl() const { return *shared_.segment().nccl; }
  BufferRing& ring() const { return shared_.segment().ring; }
  // Whether kernels can read the others' buffers where they are.
  bool readable() const { return !call_.device.staged; }

  NodeBarrier& shared_;
  // From this size on, a result evicts everything else from the caches, and has left them itself
  // when the program reads it. It is written by non-temporal stores (docs/DESIGN.md).
  static constexpr std::uint64_t kLargeBytes = 4 << 20;
  const Where in_out_ = call_.count * sizeof(float) >= kLargeBytes ? Where::memory : Where::caches;
  // By which stores this rank writes its message buffer.
  const Where stores_ = shared_.cross_cache() ? Where::memory : Where::caches;
  BufferRing::Buffers message_buffers_;
  NodeCopies copies_{call_};
};

BlockPass::BlockPass(comm::Call& call, const comm::InterNodeGroup& group)
    : NodePass(call, group), shared_(*shared_of(call.communicator)) {
  blocks_.divide(piece_of(group_, ring().longest()));
  if (blocks_.blocks() == 1)
    blocks_.divide(std::min<std::uint64_t>(blocks_.piece(), round_up(blocks_.longest(), 16)));
  message_buffers_ = ring().next(blocks_.piece() * std::uint64_t(group_.shards));
}

// The ranks of the node are named by their numbers in the communicator.
std::string BlockPass::describe_sums() const {
  const std::vector<int>& ranks = call_.communicator.layout().node_ranks();
  int other = 0;
  const auto sum_of = [&](int local) { return shared_.word(local) >> published::kSumShift; };
  while (sum_of(other) == sum_of(shared_.local_rank())) ++other;
  return describe_other_sum(ranks[std::size_t(other)], sum_of(other), published::kSumBits);
}

Status BlockPass::offer() {
  const NcclGroup::Readiness mine = nccl().readiness(call_.location);
  if (mine == NcclGroup::unavailable) shared_.segment().pin(call_.location);
  const ActiveCall* const active = ActiveCall::current();
  const std::uint64_t sum = active != nullptr ? active->sum_word(published::kSumBits) : call_.count;
  shared_.publish(std::uint64_t(mine) | sum << published::kSumShift);
  if (mine != NcclGroup::ready) SLIMPI_TRY(copy_to_others(0));
  SLIMPI_TRY(barrier());
  return shared_.published().alike(published::kSum) ? Status::ok
                                                    : fail(Status::bad_message, describe_sums());
}

// When this returns, the first block is in the message buffers, unless the call is done by nccl.
// The first block is copied a second time only if some ranks were ready for nccl and others were
// not. The first copy does no harm: every call writes a message buffer before it reads it.
Status BlockPass::agree() {
  const PassDecision decision = decide(shared_.published());
  bool by_nccl = decision.nccl;
  if (decision.open)
    SLIMPI_TRY(
        nccl().open(shared_, exchange_, call_.location, call_.communicator.statistics(), &by_nccl));
  call_.node_path = by_nccl ? comm::NodePath::nccl : comm::NodePath::shm;
  if (by_nccl) return Status::ok;
  shared_.segment().pin(call_.location);
  if (!decision.again) return Status::ok;
  SLIMPI_TRY(copy_to_others(0));
  return barrier();
}

// A communicator of NCCL whose ranks may have done different things is not closed in order.
Status BlockPass::settle(Status status) {
  status = exchange_.settle(status, {});
  if (status != Status::ok) nccl().close(false);
  return status;
}

Status BlockPass::copied() {
  SLIMPI_TRY(comm::synchronize(call_.device_stream()));
  copies_.done();
  return Status::ok;
}

Status BlockPass::barrier() {
  SLIMPI_TRY(copied());
  return shared_.barrier(exchange_, std::min(call_.count, NodeSegment::kBlock) * sizeof(float));
}

Status BlockPass::copy_to_others(std::uint64_t block) {
  return for_others(block, [&](int, int shard_index, const comm::Range& theirs) {
    return copy(place(me_, shard_index, block), call_.in + theirs.first, theirs.count, stores_);
  });
}

Status BlockPass::copy_sum(std::uint64_t block) {
  const comm::Range mine = own(block);
  if (mine.count == 0) return Status::ok;
  return copy(place(me_, group_.shard_index, block), call_.out + mine.first, mine.count, stores_);
}

Status BlockPass::fetch(std::uint64_t block) {
  return for_others(block, [&](int owner, int shard_index, const comm::Range& theirs) {
    return copy(call_.out + theirs.first, place(owner, shard_index, block), theirs.count, in_out_);
  });
}

Status BlockPass::find_addends(std::uint64_t block, std::pmr::vector<const float*>& addends) {
  const comm::Range mine = own(block);
  float* copied = call_.scratch.near.floats();
  for (int other = 0; other < size_; ++other, copied += blocks_.piece()) {
    if (other == me_) {
      addends.push_back(call_.in + mine.first);
    } else if (readable()) {
      addends.push_back(place(other, group_.shard_index, block));
    } else {
      SLIMPI_TRY(copy(copied, place(other, group_.shard_index, block), mine.count, Where::caches));
      addends.push_back(copied);
    }
  }
  return Status::ok;
}

// Adds this rank's piece of a block. A rank without a shard does nothing.
Status BlockPass::add(std::uint64_t block, bool whole) {
  const comm::Range mine = own(block);
  if (mine.count == 0) return Status::ok;
  std::pmr::vector<const float*> addends(&call_.scratch.objects);
  SLIMPI_TRY(find_addends(block, addends));
  const Slice slice = node_slice(call_, "node add", mine.count * sizeof(float));
  float* const out = call_.out + mine.first;
  if (whole)
    add_in_pairs(call_.device_stream(), addends, mine.count, scratch(), blocks_.piece(), out,
                 &call_.scratch.objects);
  else
    add_in_order(call_.device_stream(), addends, mine.count, scratch(), out);
  return Status::ok;
}

Status BlockPass::run_sum(bool whole) {
  SLIMPI_TRY(offer());
  SLIMPI_TRY(agree());
  if (call_.node_path == comm::NodePath::nccl) return Status::ok;
  for (std::uint64_t block = 0; block < blocks_.blocks(); ++block) {
    // A rank without a shard passes the same barriers.
    SLIMPI_TRY(add(block, whole));
    if (whole) SLIMPI_TRY(copy_sum(block));
    // While the owners add a block, the next one is copied: one barrier serves both.
    SLIMPI_TRY(copy_to_others(block + 1));
    SLIMPI_TRY(barrier());
    if (whole) SLIMPI_TRY(fetch(block));
  }
  end();
  return whole ? copied() : Status::ok;
}

Status BlockPass::run_share() {
  for (std::uint64_t block = 0; block < blocks_.blocks(); ++block) {
    SLIMPI_TRY(copy_sum(block));
    SLIMPI_TRY(barrier());
    SLIMPI_TRY(fetch(block));
  }
  end();
  return copied();
}

}  // namespace

std::size_t shared_scratch_bytes(std::size_t size, const comm::InterNodeGroup& group) {
  return size * piece_of(group, NodeSegment::kBlock) * sizeof(float);
}

bool can_share_memory(comm::Communicator& communicator) {
  return shared_of(communicator) != nullptr;
}

// For addends that kernels of a device cannot read where they are, and for sums of more addends
// than a kernel takes.
Status reserve_for_shm(const comm::Call& call, const comm::InterNodeGroup& group) {
  const std::size_t size = call.communicator.layout().node_ranks().size();
  const std::size_t bytes = shared_scratch_bytes(size, group);
  if (call.device.staged) SLIMPI_TRY(call.reserve(call.scratch.near, device::Place::device, bytes));
  if (size <= kernels::kMaxAddends) return Status::ok;
  return call.reserve(call.scratch.sums, device::Place::device, bytes);
}

Status reduce_scatter_by_shm(comm::Call& call, const comm::InterNodeGroup& group) {
  return BlockPass(call, group).sum();
}

Status all_gather_by_shm(comm::Call& call, const comm::InterNodeGroup& group) {
  return BlockPass(call, group).share();
}

Status allreduce_by_shm(comm::Call& call, const comm::InterNodeGroup& group) {
  return BlockPass(call, group).allreduce();
}

}  // namespace slimpi::intra
