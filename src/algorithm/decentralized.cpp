// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/decentralized.h"

#include <algorithm>

#include "algorithm/communicator.h"
#include "algorithm/hierarchical.h"
#include "algorithm/node_sum.h"
#include "algorithm/peer_exchange.h"
#include "algorithm/peers.h"
#include "algorithm/schedule.h"

namespace slimpi::algorithm {

namespace {

// Ranks behind one member of a rail.
double ranks_behind(const Communicator& communicator, const Rails& rails, int member) {
  return rails.flat ? 1 : double(communicator.layout().members[std::size_t(member)].size());
}

// Sends this worker's sum as it is and adds up the weighted sums.
class Average : public Talk {
 public:
  Average(Call& call, const Rails& rails, const Mixing& row, const float* in, float* out)
      : call_(call), kernels_(*call.device.kernels()), in_(in), out_(out) {
    const double ranks = call.communicator.size();
    const auto add = [&](int member, double weight, int source) {
      terms_.push_back(
          {member, float(ranks * weight / ranks_behind(call.communicator, rails, member)), source});
    };
    for (std::size_t i = 0; i < row.peers.size(); ++i)
      add(row.peers[i].member, row.peers[i].weight, int(i));
    add(rails.index, row.own, kOwn);
    std::sort(terms_.begin(), terms_.end(),
              [](const Term& a, const Term& b) { return a.member < b.member; });
  }

  void say(const Range& part, std::byte* code) override {
    kernels_.encode(call_.plan.format, {}, in_ + part.first, nullptr, part.count, code,
                    call_.stream);
  }

  // What was sent is read back from the message, because `out` may be `in`.
  void hear(const Range& part, const std::byte* own,
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

  Call& call_;
  const kernels::Kernels& kernels_;
  const float* in_;
  float* out_;
  std::vector<Term> terms_;
};

}  // namespace

bool peers_meet(const Call& call) {
  const std::uint64_t interval = call.communicator.config().interval;
  return interval == 1 || (call.slot->calls + 1) % interval == 0;
}

void keep_model(Call& call, const Range& slice, const float* in) {
  const Communicator& communicator = call.communicator;
  const bool flat = call.plan.hierarchy == Hierarchy::flat;
  const double behind = flat ? 1 : double(communicator.layout().neighbours().size());
  call.device.kernels()->combine(float(communicator.size() / behind), in, 0, in, slice.count,
                                 call.out + slice.first, call.stream);
}

Status run_decentralized(Call& call) {
  const Config& config = call.communicator.config();
  const bool meet = peers_meet(call);
  if (meet && config.peers == Peers::all) return run_hierarchical(call);
  const Rails& rails = call.communicator.rails(call.plan.hierarchy);
  const bool alone = rails.flat || call.communicator.layout().neighbours().size() == 1;
  if (!alone) SLIMPI_TRY(node_sum(call, rails));
  if (rails.rail >= 0) {
    const Range slice = slice_of(call.count, call.plan.format, rails, rails.rail);
    const float* const in = (alone ? call.in : call.out) + slice.first;
    const std::uint64_t round = call.slot == nullptr ? 0 : call.slot->calls / config.interval;
    const Mixing row =
        meet ? mixing(config.peers, int(rails.peers.size()), rails.index, round) : Mixing{};
    std::vector<int> ranks;
    for (const Mixing::Peer& peer : row.peers)
      ranks.push_back(rails.peers[std::size_t(peer.member)]);
    if (ranks.empty()) {
      keep_model(call, slice, in);
    } else {
      Average average(call, rails, row, in, call.out + slice.first);
      SLIMPI_TRY(exchange_with_peers(call, call.plan.format, slice, ranks, average));
    }
  }
  return alone ? Status::ok : node_share(call, rails);
}

Status reserve_decentralized(Communicator& communicator, const Plan& plan, std::uint64_t count,
                             const device::Device& device, const void* like) {
  return reserve_for_peers(communicator, plan, count, 2, device, like);
}

Status reserve_for_peers(Communicator& communicator, const Plan& plan, std::uint64_t count,
                         int peers, const device::Device& device, const void* like) {
  // The exact sum is cut where the plan's buckets are, which its own format need not know.
  Plan exact = plan;
  exact.format.coding = kernels::Coding::float32;
  SLIMPI_TRY(reserve_hierarchical(communicator, exact, count, device, like));
  const Rails& rails = communicator.rails(plan.hierarchy);
  if (rails.rail < 0) return Status::ok;
  const Range slice = slice_of(count, plan.format, rails, rails.rail);
  const std::size_t bytes =
      std::max(peer_exchange_bytes(plan.format, slice.count, peers, device.staged),
               exchange_need(exact.format, slice.count, int(rails.peers.size()),
                             communicator.grain(), device.staged)
                   .bytes);
  Statistics& statistics = communicator.statistics();
  SLIMPI_TRY(communicator.scratch().messages.reserve(device, like, device::Place::device, bytes,
                                                     statistics));
  if (device.staged)
    SLIMPI_TRY(communicator.scratch().staging.reserve(device, like, device::Place::staging, bytes,
                                                      statistics));
  return Status::ok;
}

}  // namespace slimpi::algorithm
