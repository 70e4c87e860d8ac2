// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/piecewise_node.h"

#include <algorithm>
#include <bit>

#include "comm/communicator.h"
#include "intra/intra_node.h"

namespace slimpi::algorithm {

namespace {

// With fewer segments little overlaps.
constexpr std::int64_t kLeastSegments = 4;

// Segments of one shard that are fetched after a segment of this rank's own is finished. All shards
// progress alike. Twice as much lets a rank that was late catch up, and never holds the link back
// for long.
constexpr std::int64_t kFetchedAtOnce = 2;

}  // namespace

// The communicator keeps the layout of each length.
PiecewiseNode::Layout PiecewiseNode::layout_of(const comm::Call& call,
                                               const comm::InterNodeGroup& group,
                                               const comm::Range& shard) {
  return inter::prepared_exchange(call.communicator, call.plan.format, group, shard.count, false)
      .layout;
}

Status PiecewiseNode::reserve(const comm::Call& call) {
  if (!possible(call)) return Status::ok;
  const comm::InterNodeGroup& group = call.communicator.inter_node_group(call.plan.hierarchy);
  for (int shard = 0; shard < group.shards; ++shard)
    (void)layout_of(call, group, intra::shard_range(call.count, call.plan.format, group, shard));
  return intra::NodePieces::reserve(call);
}

PiecewiseNode::PiecewiseNode(comm::Call& call, const comm::InterNodeGroup& group)
    : call_(call), group_(group), pieces_(call), shards_(&call.scratch.objects) {
  shards_.reserve(std::size_t(group.shards));
  for (int shard = 0; shard < group.shards; ++shard) {
    const comm::Range range = intra::shard_range(call.count, call.plan.format, group, shard);
    shards_.push_back({range, group.owner(shard), layout_of(call, group, range)});
  }
}

bool PiecewiseNode::possible(const comm::Call& call) {
  comm::Communicator& communicator = call.communicator;
  const comm::InterNodeGroup& group = communicator.inter_node_group(call.plan.hierarchy);
  return works_in_node(call) && !call.device.staged && group.peers.size() > 1 &&
         std::size_t(group.shards) == communicator.layout().node_ranks().size() &&
         intra::NodePieces::possible(communicator, call.count * sizeof(float));
}

Status PiecewiseNode::begin() {
  const bool enough = std::all_of(shards_.begin(), shards_.end(), [](const Shard& shard) {
    return shard.layout->count() >= kLeastSegments;
  });
  return intra::intra_reduce_scatter(call_, group_, enough ? &pieces_ : nullptr);
}

Status PiecewiseNode::sum(const comm::Range& part) {
  const comm::Range& own = shards_[std::size_t(group_.shard_index)].range;
  return pieces_.sum({own.first + part.first, part.count});
}

Status PiecewiseNode::finished(std::int64_t number) {
  pieces_.set_finished(std::uint64_t(number) + 1);
  for (Shard& shard : shards_)
    SLIMPI_TRY(fetch(shard, std::min(std::int64_t(pieces_.finished(shard.owner)),
                                     shard.fetched + kFetchedAtOnce)));
  return Status::ok;
}

// Fetches the segments before `end`.
Status PiecewiseNode::fetch(Shard& shard, std::int64_t end) {
  if (shard.owner == group_.owner(group_.shard_index)) return Status::ok;
  for (; shard.fetched < end; ++shard.fetched)
    for (int member = 0; member < int(group_.peers.size()); ++member)
      if (const comm::Range part = shard.layout->segment(member, shard.fetched); part.count != 0)
        SLIMPI_TRY(pieces_.fetch(shard.owner, {shard.range.first + part.first, part.count}));
  return Status::ok;
}

Status PiecewiseNode::end(Status status) {
  if (begun())
    status = pieces_.end(status, [&] {
      for (Shard& shard : shards_) SLIMPI_TRY(fetch(shard, shard.layout->count()));
      return Status::ok;
    });
  else if (status == Status::ok)
    status = share_in_node(call_);
  return status;
}

Status OverlapChoice::open(const comm::Call& call) {
  comm::Communicator& communicator = call.communicator;
  const comm::InterNodeGroup& group = communicator.inter_node_group(call.plan.hierarchy);
  // By what all ranks know.
  if (communicator.config().intra == Intra::automatic && !group.flat && group.shards > 1 &&
      communicator.layout().nodes() > 1 &&
      intra::NodePieces::possible(communicator, call.count * sizeof(float)))
    SLIMPI_TRY(communicator.attachment<comm::Autotuners>().find(
        communicator, comm::Autotuners::pieces, std::size_t(std::bit_width(call.count)),
        int(kCandidates), &autotuner_));
  begun_ = std::chrono::steady_clock::now();
  return Status::ok;
}

Status OverlapChoice::record(const comm::Call& call) {
  if (autotuner_ == nullptr) return Status::ok;
  const std::chrono::nanoseconds spent = std::chrono::steady_clock::now() - begun_;
  return comm::record_time(call.communicator, *autotuner_, std::uint64_t(spent.count()));
}

}  // namespace slimpi::algorithm
