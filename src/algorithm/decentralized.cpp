// SPDX-License-Identifier: BSD-3-Clause
// decentralized: the program sums its model over the N ranks and divides by N. Instead of the sum,
// a call returns N times the mean over a few peers, so its cost does not depend on the number of
// nodes. With a hierarchy each node is one worker, whose model is the mean of its ranks' models.
//
// With the mixing matrix W (inter/neighbor_exchange.h), and X_j the sum of the inputs of the k_j
// ranks of node j:
//   result_i = sum over j of (N * W_ij / k_j) * X_j, in the order of the nodes
// Calls between two exchanges (SLIMPI_INTERVAL) return N / k_i * X_i. With SLIMPI_PEERS=all the
// result is the plain sum.
// Cost: 4 n bytes sent to each peer (ring has 2 peers, shift_one 1).
// Error: float rounding only.
#include "algorithm/decentralized.h"

#include <algorithm>

#include "algorithm/hierarchical.h"
#include "comm/communicator.h"
#include "inter/schedule.h"
#include "inter/segment_length.h"

namespace slimpi::algorithm {

bool exchange_is_due(const comm::Call& call) {
  const std::uint64_t interval = call.communicator.config().interval;
  return interval == 1 || (call.state->calls + 1) % interval == 0;
}

void keep_model(comm::Call& call, const NodeShard& shard) {
  const double workers = double(call.communicator.size()) / shard.ranks;
  call.device.kernels()->combine(float(workers), shard.in, 0, nullptr, shard.range.count, shard.out,
                                 call.stream);
}

std::pmr::vector<int> ranks_of_peers(const inter::Mixing& row, const comm::InterNodeGroup& group) {
  std::pmr::vector<int> ranks(row.peers.get_allocator());
  ranks.reserve(row.peers.size());
  for (const inter::Mixing::Peer& peer : row.peers)
    ranks.push_back(group.peers[std::size_t(peer.member)]);
  return ranks;
}

Status reserve_for_peers(const comm::Call& call, int peers) {
  comm::Communicator& communicator = call.communicator;
  const comm::Plan& plan = call.plan;
  // The exact sum keeps the plan's bucket length: float32 has no buckets, but its chunks are
  // aligned to this length.
  comm::Plan exact = plan;
  exact.format.codec = kernels::Codec::float32;
  SLIMPI_TRY(reserve_hierarchical(comm::plain_call_with_plan(call, exact)));
  const comm::InterNodeGroup& group = communicator.inter_node_group(plan.hierarchy);
  if (group.shard_index < 0) return Status::ok;
  const std::uint64_t elements = own_shard(call).count;
  const bool staged = call.device.staged;
  const std::size_t bytes = std::max(
      inter::neighbor_segments(plan.format, elements, peers, staged).total,
      inter::prepared_exchange(communicator, exact.format, group, elements, staged).need.bytes);
  return call.reserve_messages(bytes);
}

namespace {

// Returns how many ranks' inputs a member of the inter-node group sends: those of its node, or 1 if
// the hierarchy is flat.
double ranks_behind(const comm::Communicator& communicator, const comm::InterNodeGroup& group,
                    int member) {
  return group.flat ? 1 : double(communicator.layout().ranks_on(member).size());
}

// Sends this worker's sum as floats, and adds the weighted sums of its peers.
class Average : public inter::PeerCodec {
 public:
  Average(comm::Call& call, const comm::InterNodeGroup& group, const inter::Mixing& row,
          const float* in, float* out)
      : call_(call),
        kernels_(*call.device.kernels()),
        in_(in),
        out_(out),
        terms_(&call.scratch.objects) {
    terms_.reserve(row.peers.size() + 1);
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

  void encode(const comm::Range& part, std::byte* payload) override {
    kernels_.encode(call_.plan.format, {}, in_ + part.first, nullptr, part.count, payload,
                    call_.stream);
  }

  // This worker's own values are read from its encoded message and not from in_, which may be the
  // same memory as out_ and is overwritten by the first sum.
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
  std::pmr::vector<Term> terms_;
};

comm::Verdict run_decentralized(comm::Call& call) {
  const Config& config = call.communicator.config();
  const bool due = exchange_is_due(call);
  if (due && config.peers == Peers::all) return run_hierarchical(call);
  return run_in_nodes(call, [&](const NodeShard& shard) {
    if (!shard.owned()) return Status::ok;
    const comm::InterNodeGroup& group = shard.group;
    const std::uint64_t round = call.state == nullptr ? 0 : call.state->calls / config.interval;
    const inter::Mixing row = due ? inter::mixing(config.peers, int(group.peers.size()),
                                                  group.index, round, &call.scratch.objects)
                                  : inter::Mixing{};
    if (row.peers.empty()) {
      keep_model(call, shard);
      return Status::ok;
    }
    Average average(call, group, row, shard.in, shard.out);
    return inter::exchange_with_neighbors(call, shard.range, ranks_of_peers(row, group), average);
  });
}

Status reserve_decentralized(const comm::Call& call) {
  return reserve_for_peers(call, 2);
}

}  // namespace

const Functions functions::decentralized = {.run = run_decentralized,
                                            .reserve = reserve_decentralized};

}  // namespace slimpi::algorithm
