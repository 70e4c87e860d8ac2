// SPDX-License-Identifier: BSD-3-Clause
#include "intra/transports.h"

#include <algorithm>
#include <memory_resource>
#include <string>
#include <vector>

#include "base/exceptions.h"
#include "comm/communicator.h"
#include "comm/stream_wait.h"
#include "intra/copies.h"
#include "intra/intra_node.h"
#include "intra/node_state.h"
#include "intra/ordered_sum.h"

namespace slimpi::intra {

namespace {

constexpr std::uint64_t kSegment = kMessageFloats;
constexpr std::size_t kSegmentBytes = kSegment * sizeof(float);
constexpr int kDepth = 2;  // segments in flight

comm::Range segment(const comm::Range& shard, std::uint64_t number) {
  if (number * kSegment >= shard.count) return {};
  return {shard.first + number * kSegment, std::min(kSegment, shard.count - number * kSegment)};
}

// A communicator with shared memory uses messages only in a call that finds the segment leased.
comm::ScratchView<std::byte> messages_of(const comm::Call& call) {
  comm::CallScratch& scratch = call.scratch;
  return shared_of(call.communicator) == nullptr ? scratch.node_messages()
                                                 : scratch.late_node_messages();
}
comm::ScratchView<std::byte> staging_of(const comm::Call& call) {
  comm::CallScratch& scratch = call.scratch;
  return shared_of(call.communicator) == nullptr ? scratch.node_staging()
                                                 : scratch.late_node_staging();
}

// In the middle of a call; a failure is reported to the other ranks.
Status reserve_in_call(const comm::Call& call, const comm::InterNodeGroup& group) {
  if (shared_of(call.communicator) == nullptr) return Status::ok;
  return reserve_node_messages(call, group);
}

// One reduce-scatter or all-gather inside a node. Segment `number` uses message buffers and
// requests number % kDepth. A send waits for the previous request of its buffer; a receive is
// posted for segment number + kDepth when segment `number` was added or copied.
class MpiPass {
 public:
  MpiPass(comm::Call& call, const comm::InterNodeGroup& group)
      : call_(call),
        group_(group),
        exchange_(call.communicator.exchange()),
        node_local_ranks_(call.communicator.layout().node_ranks()),
        me_(call.communicator.layout().local_rank()),
        size_(int(node_local_ranks_.size())),
        staged_(call.device.staged),
        memory_(messages_of(call).data()),
        staging_(staged_ ? staging_of(call).data() : memory_),
        requests_(std::size_t(2 * kDepth * size_), MPI_REQUEST_NULL, &call.scratch.objects),
        sends_(requests_.data()),
        receives_(sends_ + kDepth * size_) {
    for (int shard_index = 0; shard_index < group.shards; ++shard_index)
      segments_ = std::max(
          segments_,
          (shard_range(call.count, call.plan.format, group, shard_index).count + kSegment - 1) /
              kSegment);
  }

  Status sum() {
    return exchange_.settle(caught([&] { return run_sum(); }), requests_);
  }
  Status share() {
    return exchange_.settle(caught([&] { return run_share(); }), requests_);
  }

 private:
  Status run_sum();
  Status run_share();

  // Byte offset of the message buffer of a segment: from `other`, or to it if `outgoing`.
  std::size_t buffer(bool outgoing, std::uint64_t number, int other) const {
    return ((number % kDepth * 2 + (outgoing ? 1 : 0)) * std::uint64_t(size_) +
            std::uint64_t(other)) *
           kSegmentBytes;
  }
  // The request of a segment to or from `other`. Its message buffer is free when it is complete.
  MPI_Request& of(MPI_Request* requests, std::uint64_t number, int other) const {
    return requests[number % kDepth * std::uint64_t(size_) + std::uint64_t(other)];
  }
  comm::Range part(int shard_index, std::uint64_t number) const {
    return segment(shard_range(call_.count, call_.plan.format, group_, shard_index), number);
  }
  Status send(comm::Tag tag, std::uint64_t number, int other, const float* from,
              const comm::Range& part);
  Status post_for_sum(std::uint64_t number);
  Status post_for_share(std::uint64_t number);
  Status reduce(std::uint64_t number);
  Status finish_copies();

  comm::Call& call_;
  const comm::InterNodeGroup& group_;
  comm::Exchange& exchange_;
  const std::vector<int>& node_local_ranks_;
  const int me_, size_;
  const bool staged_;
  std::byte *memory_, *staging_;
  std::pmr::vector<MPI_Request> requests_;
  MPI_Request *const sends_, *const receives_;
  std::uint64_t segments_ = 0;
  NodeCopies copies_{call_};
};

Status MpiPass::finish_copies() {
  SLIMPI_TRY(comm::synchronize(call_.device_stream(), &exchange_));
  copies_.done();
  return Status::ok;
}

Status MpiPass::send(comm::Tag tag, std::uint64_t number, int other, const float* from,
                     const comm::Range& part) {
  MPI_Request& request = of(sends_, number, other);
  SLIMPI_TRY(exchange_.wait(request));
  const void* data = from + part.first;
  if (staged_) {
    std::byte* const staging = staging_ + buffer(true, number, other);
    SLIMPI_TRY(copies_.copy(staging, data, part.count * sizeof(float)));
    SLIMPI_TRY(finish_copies());
    data = staging;
  }
  return exchange_.send(node_local_ranks_[std::size_t(other)], tag, data,
                        part.count * sizeof(float), request);
}

// The receives take more than is expected, so that a message that is too long is an error of
// slimpi, which names the ranks, and not one of MPI.
Status MpiPass::post_for_sum(std::uint64_t number) {
  if (group_.shard_index < 0) return Status::ok;
  const comm::Range mine = part(group_.shard_index, number);
  for (int other = 0; other < size_; ++other)
    if (other != me_ && mine.count != 0)
      SLIMPI_TRY(exchange_.receive(
          node_local_ranks_[std::size_t(other)], comm::Tag::intra_reduce_scatter,
          staging_ + buffer(false, number, other), kSegmentBytes, of(receives_, number, other)));
  return Status::ok;
}

// The owner waits for a segment from every node-local rank, and adds them in rank order.
Status MpiPass::reduce(std::uint64_t number) {
  if (group_.shard_index < 0) return Status::ok;
  const comm::Range mine = part(group_.shard_index, number);
  if (mine.count == 0) return Status::ok;
  const std::size_t bytes = mine.count * sizeof(float);
  std::pmr::vector<const float*> addends(std::size_t(size_), &call_.scratch.objects);
  for (int other = 0; other < size_; ++other) {
    if (other == me_) {
      addends[std::size_t(other)] = call_.in + mine.first;
      continue;
    }
    std::size_t received = 0;
    SLIMPI_TRY(exchange_.wait(of(receives_, number, other), &received));
    if (received != bytes)
      return fail(Status::bad_message, "message from rank " +
                                           std::to_string(node_local_ranks_[std::size_t(other)]) +
                                           ": " + std::to_string(received) + " bytes where " +
                                           std::to_string(bytes) + " were expected");
    std::byte* const here = memory_ + buffer(false, number, other);
    if (staged_) SLIMPI_TRY(copies_.copy(here, staging_ + buffer(false, number, other), bytes));
    addends[std::size_t(other)] = reinterpret_cast<const float*>(here);
  }
  add_in_order(call_.device_stream(), addends, mine.count, call_.scratch.node_partial().data(),
               call_.out + mine.first);
  return staged_ ? finish_copies() : Status::ok;
}

// Each rank sends to the owners after it first, so that not all ranks send to one owner at a time.
Status MpiPass::run_sum() {
  for (std::uint64_t number = 0; number < kDepth; ++number) SLIMPI_TRY(post_for_sum(number));
  for (std::uint64_t number = 0; number < segments_; ++number) {
    for (int distance = 1; distance < size_; ++distance) {
      const int owner = (me_ + distance) % size_, shard = group_.shard_of(owner);
      if (shard < 0) continue;
      if (const comm::Range theirs = part(shard, number); theirs.count != 0)
        SLIMPI_TRY(send(comm::Tag::intra_reduce_scatter, number, owner, call_.in, theirs));
    }
    SLIMPI_TRY(reduce(number));
    SLIMPI_TRY(post_for_sum(number + kDepth));
  }
  return exchange_.wait_all(requests_);
}

Status MpiPass::post_for_share(std::uint64_t number) {
  for (int shard = 0; shard < group_.shards; ++shard) {
    const int owner = group_.owner(shard);
    const comm::Range theirs = part(shard, number);
    if (owner == me_ || theirs.count == 0) continue;
    void* const to = staged_ ? static_cast<void*>(staging_ + buffer(false, number, owner))
                             : static_cast<void*>(call_.out + theirs.first);
    SLIMPI_TRY(exchange_.receive(node_local_ranks_[std::size_t(owner)], comm::Tag::intra_all_gather,
                                 to, theirs.count * sizeof(float), of(receives_, number, owner)));
  }
  return Status::ok;
}

Status MpiPass::run_share() {
  for (std::uint64_t number = 0; number < kDepth; ++number) SLIMPI_TRY(post_for_share(number));
  for (std::uint64_t number = 0; number < segments_; ++number) {
    if (group_.shard_index >= 0)
      if (const comm::Range mine = part(group_.shard_index, number); mine.count != 0)
        for (int distance = 1; distance < size_; ++distance)
          SLIMPI_TRY(
              send(comm::Tag::intra_all_gather, number, (me_ + distance) % size_, call_.out, mine));
    for (int shard = 0; shard < group_.shards; ++shard) {
      const int owner = group_.owner(shard);
      const comm::Range theirs = part(shard, number);
      if (owner == me_ || theirs.count == 0) continue;
      SLIMPI_TRY(exchange_.wait(of(receives_, number, owner)));
      if (staged_)
        SLIMPI_TRY(copies_.copy(call_.out + theirs.first, staging_ + buffer(false, number, owner),
                                theirs.count * sizeof(float)));
    }
    if (staged_) SLIMPI_TRY(finish_copies());
    SLIMPI_TRY(post_for_share(number + kDepth));
  }
  return exchange_.wait_all(requests_);
}

}  // namespace

Status reduce_scatter_by_mpi(comm::Call& call, const comm::InterNodeGroup& group) {
  SLIMPI_TRY(reserve_in_call(call, group));
  return MpiPass(call, group).sum();
}

Status all_gather_by_mpi(comm::Call& call, const comm::InterNodeGroup& group) {
  SLIMPI_TRY(reserve_in_call(call, group));
  return MpiPass(call, group).share();
}

Status reserve_node_messages(const comm::Call& call, const comm::InterNodeGroup& group) {
  const std::size_t size = call.communicator.layout().node_ranks().size();
  if (group.flat || size == 1) return Status::ok;
  Statistics& statistics = call.communicator.statistics();
  const std::size_t bytes = kDepth * 2 * size * kSegmentBytes;
  SLIMPI_TRY(messages_of(call).reserve(call.location, device::Place::device, bytes, statistics));
  if (!call.device.staged) return Status::ok;
  return staging_of(call).reserve(call.location, device::Place::staging, bytes, statistics);
}

}  // namespace slimpi::intra
