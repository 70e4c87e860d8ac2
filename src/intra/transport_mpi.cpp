// SPDX-License-Identifier: BSD-3-Clause
// The mpi transport: exchange inside a node by MPI messages, which work between any ranks. Every
// rank sends its values of a shard to the shard's owner, which adds them in rank order and later
// sends the finished shard to all ranks of the node. The shards pass block by block. The receives
// of block n are posted once the buffers of block n - 2 are free, so at most two messages are in
// flight from one rank to another. MPI sends from, and receives into, message buffers and never the
// program's memory, because after a failure it may still use that memory (Exchange::memory_left).
#include <memory_resource>
#include <string>
#include <vector>

#include "base/exceptions.h"
#include "comm/stream_wait.h"
#include "intra/node_pass.h"
#include "intra/ordered_sum.h"
#include "intra/transports.h"

namespace slimpi::intra {

namespace {

constexpr std::uint64_t kMessageFloats = 64 << 10;              // the most floats of a message
constexpr int kDepth = 2;                                       // blocks in flight
constexpr std::size_t kBytes = kMessageFloats * sizeof(float);  // bytes of a message buffer

// One reduce-scatter or all-gather inside a node. All ranks of the node take part, even those that
// own no shard. The messages between two ranks are in the order of the blocks.
class MpiPass : NodePass {
 public:
  enum class Phase { sum, share };

  MpiPass(comm::Call& call, const comm::InterNodeGroup& group, Phase phase)
      : NodePass(call, group),
        sums_(phase == Phase::sum),
        tag_(sums_ ? comm::Tag::intra_reduce_scatter : comm::Tag::intra_all_gather),
        memory_(call.scratch.near.data()),
        staging_(call.device.staged ? call.scratch.staging.data() : memory_),
        requests_(std::size_t(2 * kDepth * size_), mpi::abi.request_null, &call.scratch.objects) {
    blocks_.divide(kMessageFloats);
  }

  Status run() {
    return exchange_.settle(caught([&] { return run_blocks(); }), requests_);
  }

 private:
  enum class Direction { in, out };

  // Return the range of a block that this rank sends to a node-local rank, or receives from it,
  // which is often empty.
  comm::Range sent_to(int other, std::uint64_t block) const {
    return sums_ ? owned_by(other, block) : own(block);
  }
  comm::Range received_from(int other, std::uint64_t block) const {
    return sums_ ? own(block) : owned_by(other, block);
  }
  comm::Range owned_by(int other, std::uint64_t block) const {
    const int shard_index = group_.shard_index_of(other);
    return shard_index < 0 ? comm::Range{} : blocks_.part(shard_index, block);
  }

  // Returns the index of a message's buffer and request. Messages to or from different ranks have
  // different buffers, so none waits for the message of another rank.
  std::size_t number(Direction direction, std::uint64_t block, int other) const {
    const int row = int(block % kDepth) * 2 + (direction == Direction::out ? 1 : 0);
    return std::size_t(row * size_ + other);
  }
  int rank_of(int local) const {
    return call_.communicator.layout().node_ranks()[std::size_t(local)];
  }

  Status run_blocks();
  Status post(std::uint64_t block);
  Status send(std::uint64_t block);
  Status take(std::uint64_t block);
  Status finish_copies();

  const bool sums_;
  const comm::Tag tag_;
  std::byte *memory_, *staging_;  // for kernels, for MPI; equal unless staged
  std::pmr::vector<mpi::Request> requests_;
  NodeCopies copies_{call_};
};

// Waits for all work on the stream: the copies, and the kernels that were queued between them.
Status MpiPass::finish_copies() {
  SLIMPI_TRY(comm::synchronize(call_.device_stream(), &exchange_));
  copies_.done();
  return Status::ok;
}

Status MpiPass::post(std::uint64_t block) {
  for (int other = 0; other < size_; ++other) {
    const comm::Range part = received_from(other, block);
    if (other == me_ || part.count == 0) continue;
    const std::size_t index = number(Direction::in, block, other);
    SLIMPI_TRY(exchange_.receive(rank_of(other), tag_, staging_ + index * kBytes,
                                 part.count * sizeof(float), requests_[index]));
  }
  return Status::ok;
}

// Sends a block's messages. Each rank begins with the rank after it, so that they do not all send
// to one rank at a time.
Status MpiPass::send(std::uint64_t block) {
  for (int distance = 1; distance < size_; ++distance) {
    const int other = (me_ + distance) % size_;
    const comm::Range part = sent_to(other, block);
    if (part.count == 0) continue;
    const std::size_t index = number(Direction::out, block, other);
    const std::size_t bytes = part.count * sizeof(float);
    std::byte* const message = staging_ + index * kBytes;
    SLIMPI_TRY(exchange_.wait(requests_[index]));
    SLIMPI_TRY(copies_.copy(message, (sums_ ? call_.in : call_.out) + part.first, bytes));
    // The copy must be complete before the send begins, because MPI may read the message at once.
    SLIMPI_TRY(finish_copies());
    SLIMPI_TRY(exchange_.send(rank_of(other), tag_, message, bytes, requests_[index]));
  }
  return Status::ok;
}

// Waits for a block's messages. In a reduce-scatter, the owner then adds their values in rank
// order.
Status MpiPass::take(std::uint64_t block) {
  std::pmr::vector<const float*> addends(&call_.scratch.objects);
  for (int other = 0; other < size_; ++other) {
    const comm::Range part = received_from(other, block);
    if (part.count == 0) continue;
    if (other == me_) {
      addends.push_back(call_.in + part.first);
      continue;
    }
    const std::size_t index = number(Direction::in, block, other);
    const std::size_t bytes = part.count * sizeof(float);
    std::size_t received = bytes;
    SLIMPI_TRY(exchange_.wait(requests_[index], &received));
    if (received != bytes)
      return fail(Status::bad_message, "message from rank " + std::to_string(rank_of(other)) +
                                           ": " + std::to_string(received) + " bytes where " +
                                           std::to_string(bytes) + " were expected");
    auto* const values =
        sums_ ? reinterpret_cast<float*>(memory_ + index * kBytes) : call_.out + part.first;
    if (!sums_ || memory_ != staging_)
      SLIMPI_TRY(copies_.copy(values, staging_ + index * kBytes, bytes));
    addends.push_back(values);
  }
  if (const comm::Range mine = own(block); sums_ && mine.count != 0)
    add_in_order(call_.device_stream(), call_.plan.format, addends, mine.count,
                 call_.scratch.sums.floats(), call_.out + mine.first);
  // The copies and additions read the buffers of the receives that are posted next.
  return finish_copies();
}

Status MpiPass::run_blocks() {
  for (std::uint64_t block = 0; block < kDepth; ++block) SLIMPI_TRY(post(block));
  for (std::uint64_t block = 0; block < blocks_.blocks(); ++block) {
    SLIMPI_TRY(send(block));
    SLIMPI_TRY(take(block));
    SLIMPI_TRY(post(block + kDepth));
  }
  return exchange_.wait_all(requests_);
}

}  // namespace

Status reduce_scatter_by_mpi(comm::Call& call, const comm::InterNodeGroup& group) {
  return MpiPass(call, group, MpiPass::Phase::sum).run();
}

Status all_gather_by_mpi(comm::Call& call, const comm::InterNodeGroup& group) {
  return MpiPass(call, group, MpiPass::Phase::share).run();
}

Status reserve_for_mpi(const comm::Call& call, const comm::InterNodeGroup&) {
  const std::size_t size = call.communicator.layout().node_ranks().size();
  SLIMPI_TRY(call.reserve_messages(2 * kDepth * size * kBytes));
  if (size <= kernels::kMaxAddends) return Status::ok;  // one kernel adds all ranks' values
  return call.reserve(call.scratch.sums, device::Place::device, kMessageFloats * sizeof(float));
}

}  // namespace slimpi::intra
