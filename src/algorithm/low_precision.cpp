// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/low_precision.h"

#include <algorithm>
#include <string>

#include "algorithm/communicator.h"
#include "algorithm/decentralized.h"
#include "algorithm/node_sum.h"
#include "algorithm/peer_exchange.h"
#include "algorithm/peers.h"
#include "algorithm/schedule.h"

namespace slimpi::algorithm {

namespace {

// The replicas that this rank keeps of its slice, and how much each counts.
struct Replicas {
  float* own = nullptr;
  std::vector<float*> peers;  // in the order of row.peers
  Mixing row;
};

Mixing row_of(Call& call, const Rails& rails) {
  return mixing(call.communicator.config().peers, int(rails.peers.size()), rails.index, 0);
}

Status find_replicas(Call& call, const Rails& rails, const Range& slice, Replicas* replicas) {
  const auto find = [&](const std::string& name, float** array) {
    return slot_array(*call.slot, name, slice.count, call.device, call.out, call.stream,
                      call.communicator.statistics(), array);
  };
  replicas->row = row_of(call, rails);
  SLIMPI_TRY(find("replica", &replicas->own));
  for (const Mixing::Peer& peer : replicas->row.peers) {
    float* array = nullptr;
    SLIMPI_TRY(find("replica of " + std::to_string(peer.member), &array));
    replicas->peers.push_back(array);
  }
  return Status::ok;
}

class Difference : public Talk {
 public:
  Difference(Call& call, const Replicas& replicas, const Range& slice, const float* in)
      : call_(call),
        kernels_(*call.device.kernels()),
        replicas_(replicas),
        slice_(slice),
        in_(in),
        out_(call.out + slice.first) {}

  // z goes where the result will be; the part of `in` under it is not needed again.
  void say(const Range& part, std::byte* code) override {
    const std::uint64_t n = part.count;
    float* const z = out_ + part.first;
    const bool flat = call_.plan.hierarchy == Hierarchy::flat;
    const double behind = flat ? 1 : double(call_.communicator.layout().neighbours().size());
    float scale = float(1 / behind);
    const float* from = in_ + part.first;
    for (std::size_t i = 0; i < replicas_.peers.size(); ++i) {
      kernels_.combine(scale, from, float(replicas_.row.peers[i].weight),
                       replicas_.peers[i] + part.first, n, z, call_.stream);
      scale = 1;
      from = z;
    }
    kernels_.combine(scale, from, float(replicas_.row.own - 2), replicas_.own + part.first, n, z,
                     call_.stream);
    const kernels::Draw draw = {call_.communicator.config().seed,
                                std::uint32_t(call_.communicator.rank()), call_.number,
                                slice_.first + part.first};
    kernels_.encode(call_.plan.format, draw, z, nullptr, n, code, call_.stream);
  }

  void hear(const Range& part, const std::byte* own,
            std::span<const std::byte* const> theirs) override {
    const std::uint64_t n = part.count;
    for (std::size_t i = 0; i < theirs.size(); ++i)
      kernels_.decode_add(call_.plan.format, theirs[i], n, replicas_.peers[i] + part.first,
                          call_.stream);
    float* const w = replicas_.own + part.first;
    kernels_.decode_add(call_.plan.format, own, n, w, call_.stream);
    kernels_.combine(float(call_.communicator.size()), w, 0, w, n, out_ + part.first, call_.stream);
  }

 private:
  Call& call_;
  const kernels::Kernels& kernels_;
  const Replicas& replicas_;
  const Range slice_;
  const float* in_;
  float* out_;
};

// The exact sum over the rail, and every replica = the mean.
Status start_over(Call& call, const Rails& rails, const Range& slice, const float* in,
                  const Replicas& replicas) {
  Plan exact = call.plan;
  exact.format.coding = kernels::Coding::float32;
  Call sum{call.communicator, exact,       in,          call.out, call.count,
           call.device,       call.stream, call.number, call.slot};
  float* const out = call.out + slice.first;
  const Schedule& schedule =
      schedule_for(exact.format, slice.count, int(rails.peers.size()), call.communicator.grain());
  SLIMPI_TRY(schedule.run(sum, rails, slice, in, out, nullptr));
  const float share = float(1.0 / call.communicator.size());
  const auto fill = [&](float* replica) {
    call.device.kernels()->combine(share, out, 0, out, slice.count, replica, call.stream);
  };
  fill(replicas.own);
  for (float* const peer : replicas.peers) fill(peer);
  return Status::ok;
}

// A replica that overflowed would stay infinite; the next call finds out what this one left.
Status watch(Call& call, const Range& slice, const Replicas& replicas) {
  Memory& found = call.communicator.scratch().found;
  SLIMPI_TRY(found.reserve(call.device, call.out, device::Place::device, sizeof(int),
                           call.communicator.statistics()));
  int* const flag = reinterpret_cast<int*>(found.data());
  call.device.kernels()->find_beyond(replicas.own, kernels::kGreatestFloat, slice.count, flag,
                                     call.stream);
  return call.device.copy(&call.slot->spoiled, flag, sizeof(int), call.stream);
}

}  // namespace

Status run_low_precision(Call& call) {
  const Rails& rails = call.communicator.rails(call.plan.hierarchy);
  const bool alone = rails.flat || call.communicator.layout().neighbours().size() == 1;
  if (!alone) SLIMPI_TRY(node_sum(call, rails));
  if (rails.rail >= 0) {
    const Range slice = slice_of(call.count, call.plan.format, rails, rails.rail);
    const float* const in = (alone ? call.in : call.out) + slice.first;
    Replicas replicas;
    SLIMPI_TRY(find_replicas(call, rails, slice, &replicas));
    if (call.slot->fresh) {
      SLIMPI_TRY(start_over(call, rails, slice, in, replicas));
      SLIMPI_TRY(watch(call, slice, replicas));
    } else if (peers_meet(call)) {
      std::vector<int> ranks;
      for (const Mixing::Peer& peer : replicas.row.peers)
        ranks.push_back(rails.peers[std::size_t(peer.member)]);
      Difference difference(call, replicas, slice, in);
      SLIMPI_TRY(exchange_with_peers(call, call.plan.format, slice, ranks, difference));
      SLIMPI_TRY(watch(call, slice, replicas));
    } else {
      keep_model(call, slice, in);
    }
  }
  return alone ? Status::ok : node_share(call, rails);
}

Status reserve_low_precision(Communicator& communicator, const Plan& plan, std::uint64_t count,
                             const device::Device& device, const void* like) {
  const Rails& rails = communicator.rails(plan.hierarchy);
  const Mixing row =
      mixing(communicator.config().peers, std::max(1, int(rails.peers.size())), rails.index, 0);
  return reserve_for_peers(communicator, plan, count, int(row.peers.size()), device, like);
}

Status reserve_replicas(Call& call) {
  const Rails& rails = call.communicator.rails(call.plan.hierarchy);
  if (rails.rail < 0) return Status::ok;
  Replicas replicas;
  return find_replicas(call, rails, slice_of(call.count, call.plan.format, rails, rails.rail),
                       &replicas);
}

}  // namespace slimpi::algorithm
