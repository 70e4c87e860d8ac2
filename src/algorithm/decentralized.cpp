// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/decentralized.h"

#include <algorithm>

#include "algorithm/hierarchical.h"
#include "comm/communicator.h"
#include "inter/mixing.h"
#include "inter/neighbor_exchange.h"
#include "inter/schedule.h"
#include "intra/intra_node.h"

namespace slimpi::algorithm {

namespace {

// The number of ranks on the node of one member of an inter-node group.
double ranks_behind(const comm::Communicator& communicator, const comm::InterNodeGroup& group,
                    int member) {
  return group.flat ? 1 : double(communicator.layout().ranks_of[std::size_t(member)].size());
}

// Sends this worker's sum as floats and adds the weighted sums of its peers.
class Average : public inter::PeerCodec {
 public:
  Average(comm::Call& call, const comm::InterNodeGroup& group, const inter::Mixing& row,
          const float* in, float* out)
      : call_(call), kernels_(*call.device.kernels()), in_(in), out_(out) {
    const double ranks = call.communicator.size();
    const auto add = [&](int member, double weight, int source) {
      terms_.push_back(
          {member, float(ranks * weight / ranks_behind(call.communicator, group, member)), source});
    };
    for (std::size_t i = 0; i < row.peers.size(); ++i)
      add(row.peers[i].member, row.peers[i].weight, int(i));
    add(group.index, row.own, kOwn);
    std::sort(terms_.begin(), terms_.end(),
              [](const Term& a, const Term& b) { return a.member < b.member; });
  }

  void encode(const comm::Range& part, std::byte* code) override {
    kernels_.encode(call_.plan.format, {}, in_ + part.first, nullptr, part.count, code,
                    call_.stream);
  }

  // Reads this worker's own values from its message, because `out` may be `in`.
  void apply(const comm::Range& part, const std::byte* own,
             std::span<const std::byte* const> theirs) override {
    const auto term = [&](std::size_t i) {
      const int source = terms_[i].source;
      return reinterpret_cast<const float*>(source == kOwn ? own : theirs[std::size_t(source)]);
    };
    float* const out = out_ + part.first;
    kernels_.combine(terms_[0].weight, term(0), terms_[1].weight, term(1), part.count, out,
                     call_.stream);
    for (std::size_t i = 2; i < terms_.size(); ++i)
      kernels_.combine(1, out, terms_[i].weight, term(i), part.count, out, call_.stream);
  }

 private:
  static constexpr int kOwn = -1;
  struct Term {
    int member;
    float weight;
    int source;  // position among the peers, or kOwn
  };

  comm::Call& call_;
  const kernels::Kernels& kernels_;
  const float* in_;
  float* out_;
  std::vector<Term> terms_;
};

}  // namespace

bool exchange_is_due(const comm::Call& call) {
  const std::uint64_t interval = call.communicator.config().interval;
  return interval == 1 || (call.state->calls + 1) % interval == 0;
}

void keep_model(comm::Call& call, const comm::Range& shard, const float* in) {
  const comm::Communicator& communicator = call.communicator;
  const bool flat = call.plan.hierarchy == Hierarchy::flat;
  const double behind = flat ? 1 : double(communicator.layout().node_ranks().size());
  call.device.kernels()->combine(float(communicator.size() / behind), in, 0, in, shard.count,
                                 call.out + shard.first, call.stream);
}

Status run_decentralized(comm::Call& call) {
  const Config& config = call.communicator.config();
  const bool meet = exchange_is_due(call);
  if (meet && config.peers == Peers::all) return run_hierarchical(call);
  const comm::InterNodeGroup& group = call.communicator.inter_node_group(call.plan.hierarchy);
  const bool alone = group.flat || call.communicator.layout().node_ranks().size() == 1;
  if (!alone) SLIMPI_TRY(intra::intra_reduce_scatter(call, group));
  if (group.shard_index >= 0) {
    const comm::Range shard =
        intra::shard_range(call.count, call.plan.format, group, group.shard_index);
    const float* const in = (alone ? call.in : call.out) + shard.first;
    const std::uint64_t round = call.state == nullptr ? 0 : call.state->calls / config.interval;
    const inter::Mixing row =
        meet ? inter::mixing(config.peers, int(group.peers.size()), group.index, round)
             : inter::Mixing{};
    std::vector<int> ranks;
    for (const inter::Mixing::Peer& peer : row.peers)
      ranks.push_back(group.peers[std::size_t(peer.member)]);
    if (ranks.empty()) {
      keep_model(call, shard, in);
    } else {
      Average average(call, group, row, in, call.out + shard.first);
      SLIMPI_TRY(inter::exchange_with_neighbors(call, shard, ranks, average));
    }
  }
  return alone ? Status::ok : intra::intra_all_gather(call, group);
}

Status reserve_decentralized(comm::Communicator& communicator, const comm::Plan& plan,
                             std::uint64_t count, const device::Location& location) {
  return reserve_for_peers(communicator, plan, count, 2, location);
}

Status reserve_for_peers(comm::Communicator& communicator, const comm::Plan& plan,
                         std::uint64_t count, int peers, const device::Location& location) {
  // The exact sum keeps the plan's bucket length, to which its chunks are aligned, although float32
  // has no buckets.
  comm::Plan exact = plan;
  exact.format.codec = kernels::Codec::float32;
  SLIMPI_TRY(reserve_hierarchical(communicator, exact, count, location));
  const comm::InterNodeGroup& group = communicator.inter_node_group(plan.hierarchy);
  if (group.shard_index < 0) return Status::ok;
  const comm::Range shard = intra::shard_range(count, plan.format, group, group.shard_index);
  const std::size_t bytes = std::max(
      inter::neighbor_exchange_bytes(plan.format, shard.count, peers, location.device->staged),
      inter::exchange_need(exact.format, shard.count, int(group.peers.size()),
                           communicator.segment_class(), location.device->staged)
          .bytes);
  Statistics& statistics = communicator.statistics();
  SLIMPI_TRY(
      communicator.scratch().messages.reserve(location, device::Place::device, bytes, statistics));
  if (location.device->staged)
    SLIMPI_TRY(communicator.scratch().staging.reserve(location, device::Place::staging, bytes,
                                                      statistics));
  return Status::ok;
}

}  // namespace slimpi::algorithm
