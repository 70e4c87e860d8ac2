// SPDX-License-Identifier: BSD-3-Clause
// The mpi transport: exchange inside a node by MPI messages, which work between any ranks. Every
// rank sends each owner its values of that owner's shard; the owner adds them in rank order; then
// it sends its finished shard to all ranks of the node. The shards pass segment by segment. The
// receives of a segment are posted when the buffers of the segment two before it are free, so at
// most two messages are in flight from one rank to another.
#include <algorithm>
#include <memory_resource>
#include <vector>

#include "base/exceptions.h"
#include "intra/node_messages.h"
#include "intra/node_pass.h"
#include "intra/ordered_sum.h"
#include "intra/transports.h"

namespace slimpi::intra {

namespace {

constexpr std::uint64_t kSegment = NodeMessages::kSegment;
constexpr int kDepth = NodeMessages::kDepth;

// One reduce-scatter or all-gather inside a node. All its ranks take part, also those that own no
// shard; they agree on the order of the messages between two ranks, which is that of the segments.
class MpiPass : NodePass {
 public:
  MpiPass(comm::Call& call, const comm::InterNodeGroup& group)
      : NodePass(call, group), staged_(call.device.staged), messages_(call) {
    blocks_.divide(kSegment);  // a block is a segment of each shard
  }

  Status sum() {
    return exchange_.settle(caught([&] { return run_sum(); }), messages_.requests());
  }
  Status share() {
    return exchange_.settle(caught([&] { return run_share(); }), messages_.requests());
  }

 private:
  Status run_sum();
  Status run_share();

  Status post_for_sum(std::uint64_t number);
  Status post_for_share(std::uint64_t number);
  Status reduce(std::uint64_t number);

  const bool staged_;
  NodeMessages messages_;
};

Status MpiPass::post_for_sum(std::uint64_t number) {
  if (own(number).count == 0) return Status::ok;
  for (int other = 0; other < size_; ++other)
    if (other != me_) SLIMPI_TRY(messages_.post(comm::Tag::intra_reduce_scatter, number, other));
  return Status::ok;
}

// The owner waits for a segment from every node-local rank, and adds them in rank order.
Status MpiPass::reduce(std::uint64_t number) {
  const comm::Range mine = own(number);
  if (mine.count == 0) return Status::ok;
  std::pmr::vector<const float*> addends(std::size_t(size_), &call_.scratch.objects);
  for (int other = 0; other < size_; ++other)
    if (other == me_)
      addends[std::size_t(other)] = call_.in + mine.first;
    else
      SLIMPI_TRY(messages_.take(number, other, mine.count, &addends[std::size_t(other)]));
  add_in_order(call_.device_stream(), addends, mine.count, call_.scratch.node_partial().data(),
               call_.out + mine.first);
  // The buffers are posted again next, and the additions read them.
  return staged_ ? messages_.finish_copies() : Status::ok;
}

// Each rank sends to the owners after it first, so that not all ranks send to one owner at a time.
Status MpiPass::run_sum() {
  for (std::uint64_t number = 0; number < kDepth; ++number) SLIMPI_TRY(post_for_sum(number));
  for (std::uint64_t number = 0; number < blocks_.blocks(); ++number) {
    for (int distance = 1; distance < size_; ++distance) {
      const int other = (me_ + distance) % size_, shard_index = group_.shard_of(other);
      if (shard_index < 0) continue;
      if (const comm::Range theirs = blocks_.part(shard_index, number); theirs.count != 0)
        SLIMPI_TRY(
            messages_.send(comm::Tag::intra_reduce_scatter, number, other, call_.in, theirs));
    }
    SLIMPI_TRY(reduce(number));
    SLIMPI_TRY(post_for_sum(number + kDepth));
  }
  return exchange_.wait_all(messages_.requests());
}

Status MpiPass::post_for_share(std::uint64_t number) {
  return for_others(number, [&](int owner, int, const comm::Range& theirs) {
    return messages_.post_into(comm::Tag::intra_all_gather, number, owner, call_.out + theirs.first,
                               theirs.count);
  });
}

Status MpiPass::run_share() {
  for (std::uint64_t number = 0; number < kDepth; ++number) SLIMPI_TRY(post_for_share(number));
  for (std::uint64_t number = 0; number < blocks_.blocks(); ++number) {
    if (const comm::Range mine = own(number); mine.count != 0)
      for (int distance = 1; distance < size_; ++distance)
        SLIMPI_TRY(messages_.send(comm::Tag::intra_all_gather, number, (me_ + distance) % size_,
                                  call_.out, mine));
    SLIMPI_TRY(for_others(number, [&](int owner, int, const comm::Range& theirs) {
      return messages_.take_into(number, owner, call_.out + theirs.first, theirs.count);
    }));
    // The staging buffers are posted again next.
    if (staged_) SLIMPI_TRY(messages_.finish_copies());
    SLIMPI_TRY(post_for_share(number + kDepth));
  }
  return exchange_.wait_all(messages_.requests());
}

}  // namespace

Status reduce_scatter_by_mpi(comm::Call& call, const comm::InterNodeGroup& group) {
  return MpiPass(call, group).sum();
}

Status all_gather_by_mpi(comm::Call& call, const comm::InterNodeGroup& group) {
  return MpiPass(call, group).share();
}

}  // namespace slimpi::intra
