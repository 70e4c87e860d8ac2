// SPDX-License-Identifier: BSD-3-Clause
// The nccl transport: exchange inside a node by NCCL, GPU to GPU. The node-local ranks send
// each owner their values of its shard, directly from the program's buffers, one block at a time.
// The owner adds a block in rank order while it receives the next one. The finished shards are sent
// to all ranks at once. Everything is queued on two streams, NCCL's and the call's, which wait for
// each other by events.
#include <memory_resource>
#include <vector>

#include "base/exceptions.h"
#include "comm/stream_wait.h"
#include "intra/nccl_group.h"
#include "intra/node_pass.h"
#include "intra/node_state.h"
#include "intra/ordered_sum.h"
#include "intra/transports.h"

namespace slimpi::intra {

namespace {

using device::NcclTransport;

class NcclPass : NodePass {
 public:
  NcclPass(comm::Call& call, const comm::InterNodeGroup& group)
      : NodePass(call, group),
        nccl_(*shared_of(call.communicator)->segment().nccl),
        transfers_(&call.scratch.objects) {
    // A block of a shard begins at a multiple of 64 floats, as kernels need it.
    blocks_.divide(NcclGroup::piece(size_));
  }

  Status sum() {
    return settle(caught([&] { return run_sum(false); }));
  }
  Status share() {
    return settle(caught([&] { return run_share(); }));
  }
  Status allreduce() {
    return settle(caught([&] {
      // In one settle: a rank that fails in the sum fails the share on all ranks, too.
      SLIMPI_TRY(run_sum(true));
      return run_share();
    }));
  }

 private:
  Status settle(Status status);
  Status run_sum(bool pairwise);
  Status run_share();
  Status find_stream();
  Status finish();
  Status transfer(std::uint64_t block);
  Status reduce(std::uint64_t block, bool pairwise);
  bool owner() const { return group_.shard_index >= 0; }
  // Where a block from `other` is received. Block b + kDepth overwrites block b.
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
    // One group of transfers: NCCL starts all of them together, so their order among the ranks does
    // not matter.
    const Status sent = nccl_.send(exchange_, transfers_, nccl_stream_);
    transfers_.clear();
    return sent;
  }

  NcclGroup& nccl_;
  std::pmr::vector<NcclTransport::Transfer> transfers_;
  device::Stream* nccl_stream_ = nullptr;
  // Events of the call's stream, by ring index: the block there was added.
  std::uint64_t added_[NcclGroup::kDepth] = {};
};

// If a rank failed, its node-local ranks' GPUs would wait forever. settle() has reported the
// failure to all ranks, so all of them abort the communicator.
Status NcclPass::settle(Status status) {
  status = exchange_.settle(status, {});
  if (status != Status::ok) nccl_.close(false);
  return status;
}

// NCCL uses the communicator's h2d stream. First that stream must be seen to have completed
// everything: the next work on it then waits for what the program has queued on its own stream.
Status NcclPass::find_stream() {
  SLIMPI_TRY(call_.communicator.stream_for(call_.location, &nccl_stream_, comm::StreamRole::h2d));
  SLIMPI_TRY(nccl_.wait(exchange_, nccl_stream_));
  return comm::hold_up(call_.device, nccl_stream_, call_.stream);
}

// Waits until both streams have completed everything. The next work on them then waits for what the
// program queues until then.
Status NcclPass::finish() {
  SLIMPI_TRY(nccl_.wait(exchange_, nccl_stream_));
  return nccl_.wait(exchange_, call_.stream);
}

// Queues the sends and receives of a block. Memory is received into again only when its last block
// was added.
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

// The owner adds a block behind its receives, and records when its memory is free again.
Status NcclPass::reduce(std::uint64_t block, bool pairwise) {
  const comm::Range mine = own(block);
  if (mine.count == 0) return Status::ok;
  // The additions wait on the GPU for the receives. The host goes on and queues the next block.
  SLIMPI_TRY(comm::hold_up(call_.device, call_.stream, nccl_stream_));
  std::pmr::vector<const float*> addends(&call_.scratch.objects);
  for (int other = 0; other < size_; ++other)
    addends.push_back(other == me_ ? call_.in + mine.first : arrived(other, block));
  float* const out = call_.out + mine.first;
  if (pairwise)
    add_in_pairs(call_.device_stream(), addends, mine.count, nccl_.partial(), blocks_.piece(), out);
  else
    add_in_order(call_.device_stream(), addends, mine.count, nccl_.partial(), out);
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

}  // namespace slimpi::intra
