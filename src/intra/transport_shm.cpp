// SPDX-License-Identifier: BSD-3-Clause
#include "intra/transport_shm.h"

#include "base/round_up.h"
#include "comm/stream_wait.h"
#include "intra/ordered_sum.h"
#include "intra/transports.h"
#include "observe/activity.h"

namespace slimpi::intra {

BlockPass::BlockPass(comm::Call& call, const comm::InterNodeGroup& group)
    : NodePass(call, group), shared_(*shared_of(call.communicator)) {
  blocks_.divide(piece_of(group_, ring().longest()));
  if (blocks_.blocks() == 1)
    blocks_.divide(std::min<std::uint64_t>(blocks_.piece(), round_up(blocks_.longest(), 16)));
  message_buffers_ = ring().next(blocks_.piece() * std::uint64_t(group_.shards));
}

// Returns the text of the error that the ranks of the node make different sums. It names the ranks
// by their numbers in the communicator.
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

// After agree(), the first block is in the message buffers, unless NCCL does the call. The first
// block is copied a second time only if some ranks were ready for nccl and others were not. The
// first copy does no harm: every call writes a message buffer before it reads it.
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

// Ends a pass. After a failure the ranks may have done different things, so NCCL's communicator is
// aborted, not closed in order.
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
    return copy(place(me_, shard_index, block), call_.in + theirs.first, theirs.count, stores());
  });
}

Status BlockPass::copy_sum(std::uint64_t block, const float* sum) {
  const comm::Range mine = own(block);
  if (mine.count == 0) return Status::ok;
  float* const buffer = place(me_, group_.shard_index, block);
  return sum == buffer ? Status::ok : copy(buffer, sum, mine.count, stores());
}

Status BlockPass::fetch(std::uint64_t block) {
  return for_others(block, [&](int owner, int shard_index, const comm::Range& theirs) {
    return copy(call_.out + theirs.first, place(owner, shard_index, block), theirs.count, in_out_);
  });
}

Status BlockPass::find_addends(std::uint64_t block, std::pmr::vector<const float*>& addends) {
  const comm::Range mine = own(block);
  float* copied = call_.scratch.node_addends().data();
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

// Adds this rank's piece of a block, by add_addends(addends, piece). A rank without a shard does
// nothing.
template <typename Add>
Status BlockPass::add(std::uint64_t block, const Add& add_addends) {
  const comm::Range mine = own(block);
  if (mine.count == 0) return Status::ok;
  std::pmr::vector<const float*> addends(&call_.scratch.objects);
  SLIMPI_TRY(find_addends(block, addends));
  const Slice slice = node_slice(call_, "node add", mine.count * sizeof(float));
  add_addends(addends, mine);
  return Status::ok;
}

Status BlockPass::run_sum() {
  SLIMPI_TRY(offer());
  SLIMPI_TRY(agree());
  if (call_.node_path == comm::NodePath::nccl) return Status::ok;
  for (std::uint64_t block = 0; block < blocks_.blocks(); ++block) {
    // A rank without a shard passes the same barriers.
    SLIMPI_TRY(add(block, [&](const std::pmr::vector<const float*>& addends,
                              const comm::Range& mine) {
      add_in_order(call_.device_stream(), addends, mine.count, scratch(), call_.out + mine.first);
    }));
    // While the owners add a block, the next one is copied: one barrier serves both.
    SLIMPI_TRY(copy_to_others(block + 1));
    SLIMPI_TRY(barrier());
  }
  end();
  return Status::ok;
}

Status BlockPass::run_share() {
  for (std::uint64_t block = 0; block < blocks_.blocks(); ++block) {
    SLIMPI_TRY(copy_sum(block, call_.out + own(block).first));
    SLIMPI_TRY(barrier());
    SLIMPI_TRY(fetch(block));
  }
  end();
  return copied();
}

// Adds each block and copies the sum; after one barrier, fetches the sums of the other ranks.
Status BlockPass::run_allreduce() {
  SLIMPI_TRY(offer());
  SLIMPI_TRY(agree());
  if (call_.node_path == comm::NodePath::nccl) return Status::ok;
  for (std::uint64_t block = 0; block < blocks_.blocks(); ++block) {
    SLIMPI_TRY(
        add(block, [&](const std::pmr::vector<const float*>& addends, const comm::Range& mine) {
          add_in_pairs(call_.device_stream(), addends, mine.count, scratch(), blocks_.piece(),
                       call_.out + mine.first, &call_.scratch.objects);
        }));
    SLIMPI_TRY(copy_sum(block, call_.out + own(block).first));
    SLIMPI_TRY(copy_to_others(block + 1));
    SLIMPI_TRY(barrier());
    SLIMPI_TRY(fetch(block));
  }
  end();
  return copied();
}

Status BlockPass::sum() {
  return settle(caught([&] { return run_sum(); }));
}

Status BlockPass::share() {
  return settle(caught([&] { return run_share(); }));
}

Status BlockPass::allreduce() {
  return settle(caught([&] { return run_allreduce(); }));
}

std::uint64_t shared_scratch_floats(std::size_t size, const comm::InterNodeGroup& group) {
  return size * piece_of(group, NodeSegment::kBlock);
}

bool can_share_memory(comm::Communicator& communicator) {
  return shared_of(communicator) != nullptr;
}

// Reserves memory for addends that kernels of a staged device cannot read in place, and for sums of
// more addends than a kernel takes.
Status reserve_for_shm(const comm::Call& call, const comm::InterNodeGroup& group) {
  const std::size_t size = call.communicator.layout().node_ranks().size();
  const std::uint64_t floats = shared_scratch_floats(size, group);
  Statistics& statistics = call.communicator.statistics();
  if (call.device.staged)
    SLIMPI_TRY(call.scratch.node_addends().reserve(call.location, device::Place::device, floats,
                                                   statistics));
  if (size <= kernels::kMaxAddends) return Status::ok;
  return call.scratch.node_partial().reserve(call.location, device::Place::device, floats,
                                             statistics);
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
