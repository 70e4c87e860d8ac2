// SPDX-License-Identifier: BSD-3-Clause
// The shm transport: a pass through message buffers in host memory that the ranks of a node share.
//
// The vector passes in blocks, each of which has a piece of each shard (the part of the vector that
// one rank, the owner, adds). For each block, every rank copies its values of the other ranks'
// shards into its message buffer and passes a barrier. Then every owner adds its shard from all
// message buffers. In an allreduce of one node, the owner then copies the sum into its own message
// buffer, from where the other ranks copy it.
//
// The ring has three buffers, so one barrier per block is enough: a rank rewrites a buffer only
// after a barrier that every rank reached after reading the buffer. While a rank writes a block,
// other ranks read at most the two blocks before it; while it writes the first block of a call,
// they may still read the last block of the previous call.
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

// Returns the floats of one shard in a block of `block` floats. All shards fit into the block,
// because open_segment() makes blocks of at least kLeastPiece floats per shard.
std::uint64_t piece_of(const comm::InterNodeGroup& group, std::uint64_t block) {
  return std::max(block / std::uint64_t(group.shards) / kLeastPiece * kLeastPiece, kLeastPiece);
}

class BlockPass : NodePass {
 public:
  BlockPass(comm::Call& call, const comm::InterNodeGroup& group);

  // sum() and share() are the two passes of a hierarchical call, and allreduce() is the pass of a
  // call on one node. See transports.h.
  Status sum() {
    return settle(caught([&] { return run_sum(false); }), nccl());
  }
  Status share() {
    return settle(caught([&] { return run_share(); }), nccl());
  }
  Status allreduce() {
    return settle(caught([&] { return run_sum(true); }), nccl());
  }

 private:
  using Where = NodeCopies::Where;

  // The steps at the first barrier. offer() copies the first block, unless NCCL is ready, publishes
  // this rank's word (transports.h) and passes the barrier. agree() then chooses shm or NCCL from
  // the words of all ranks, so that all choose the same.
  Status offer();
  Status agree();
  // Ends the pass. Every rank has used equally many message buffers, so the next call begins with
  // the same buffer everywhere.
  void end() { ring().pass(message_buffers_, blocks_.blocks()); }

  // Copies this rank's values of the other ranks' shards into its message buffer of the block.
  Status copy_to_others(std::uint64_t block);
  // Copies this rank's sum of a block into its message buffer, from where the other ranks fetch it
  // after the next barrier.
  Status copy_sum(std::uint64_t block);
  // Copies a block's finished parts of the other shards from their owners' buffers to `out`.
  Status fetch(std::uint64_t block);
  Status add(std::uint64_t block, bool whole);
  // Fills `addends`, in rank order, with pointers to all node-local ranks' values of this rank's
  // shard in a block. Copies the values first if the kernels cannot read them in place.
  Status find_addends(std::uint64_t block, std::pmr::vector<const float*>& addends);

  // Returns where a shard's piece of a block is in the message buffer of local rank `local`, which
  // only that rank writes.
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
  // Waits for the copies and additions on the stream. Other ranks may then read the message buffer.
  Status copied();
  Status barrier();

  // Returns this rank's scratch memory for additions.
  float* scratch() const { return call_.scratch.sums.floats(); }
  // Runs a reduce-scatter or, if `whole`, the allreduce of one node, which adds in pairs and shares
  // each block once it is added.
  Status run_sum(bool whole);
  Status run_share();
  std::string describe_sums() const;
  NcclGroup& nccl() const { return *shared_.segment().nccl; }
  BufferRing& ring() const { return shared_.segment().ring; }
  // Returns whether kernels can read the other ranks' message buffers in place.
  bool readable() const { return !call_.device.staged; }

  NodeBarrier& shared_;
  // From this size on, fetch() writes the result by non-temporal stores, which bypass the caches. A
  // result of this size would evict everything else from them, and be evicted itself before the
  // program reads it (docs/DESIGN.md).
  static constexpr std::uint64_t kLargeBytes = 4 << 20;
  const Where in_out_ = call_.count * sizeof(float) >= kLargeBytes ? Where::memory : Where::caches;
  // How this rank writes its message buffer: by stores to its caches, or by non-temporal stores to
  // memory.
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

// Returns the error text if the ranks of the node make different sums. The text names the ranks by
// their numbers in the communicator.
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

// After agree(), the first block is in the message buffers, unless NCCL runs the call. A rank that
// was ready for NCCL has not copied the block in offer(), so if the ranks published different
// readiness, all copy it again. If NCCL runs the call, a copy made in offer() does no harm, because
// every call writes a message buffer before it reads the buffer.
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

// Adds this rank's piece of a block, if it owns a shard.
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
    add_in_order(call_.device_stream(), call_.plan.format, addends, mine.count, scratch(), out);
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
    // The next block is copied before the barrier, so that one barrier serves both blocks.
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

// Reserves memory for addends that kernels of a staged device (a GPU) cannot read in place, and for
// sums of more addends than a kernel takes.
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
