// SPDX-License-Identifier: BSD-3-Clause
#include "tests/mpi/values/gossip.h"

#include <algorithm>

#include "comm/node_layout.h"
#include "device/device.h"
#include "kernels/kernels.h"

using namespace slimpi;

Gossip::Gossip(const Config& config, int ranks, std::size_t count)
    : config_(config),
      ranks_(ranks),
      count_(count),
      low_(config.algorithm == "low_precision_decentralized") {
  const int node =
      config.hierarchy == Hierarchy::flat ? 1 : std::max(1, int(config.ranks_per_node));
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank % node == 0) members_.emplace_back();
    members_.back().push_back(rank);
  }
}

std::vector<Gossip::Weight> Gossip::row(int worker, std::uint64_t round) const {
  const int m = workers();
  std::vector<Weight> row;
  if (config_.peers == Peers::all) {
    for (int other = 0; other < m; ++other)
      if (other != worker) row.push_back({other, 1.0 / m});
  } else if (config_.peers == Peers::ring) {
    const int left = (worker + m - 1) % m, right = (worker + 1) % m;
    row.push_back({left, m == 2 ? 0.5 : 1.0 / 3});
    if (m > 2) row.push_back({right, 1.0 / 3});
  } else {
    // The circle method of round-robin tournaments: seat 0 stays, and the other workers move on by
    // one seat each round. Workers that sit opposite are peers. With an odd number one seat is
    // empty.
    const int seats = m + m % 2, turning = seats - 1;
    const auto place = [&](int who) { return who == seats - 1 ? -1 : who; };
    const int turn = int(round % std::uint64_t(turning));
    for (int a = 0; a < seats; ++a)
      for (int b = 0; b < seats; ++b) {
        const bool meet = place(a) >= 0 && place(b) >= 0
                              ? a != b && (a + b) % turning == turn
                              : a != b && 2 * std::min(a, b) % turning == turn;
        if (meet && a == worker && b < m) row.push_back({b, 0.5});
      }
  }
  return row;
}

double Gossip::own(const std::vector<Weight>& row) {
  double weight = 1;
  for (const Weight& other : row) weight -= other.weight;
  return weight;
}

Gossip::Vector Gossip::total(const std::vector<Vector>& sums) const {
  Vector total = sums[0];
  for (std::size_t w = 1; w < sums.size(); ++w)
    for (std::size_t i = 0; i < count_; ++i) total[i] += sums[w][i];
  return total;
}

// Adds in the order of workers, and rounds each product before adding it.
Gossip::Vector Gossip::average(const std::vector<Vector>& sums, int worker,
                               std::uint64_t round) const {
  std::vector<Weight> terms = row(worker, round);
  terms.push_back({worker, own(terms)});
  std::sort(terms.begin(), terms.end(),
            [](const Weight& a, const Weight& b) { return a.worker < b.worker; });
  Vector out(count_);
  bool first = true;
  for (const Weight& term : terms) {
    const std::size_t w = std::size_t(term.worker);
    const float weight = float(ranks_ * term.weight / double(members_[w].size()));
    for (std::size_t i = 0; i < count_; ++i) {
      const float product = weight * sums[w][i];
      out[i] = first ? product : out[i] + product;
    }
    first = false;
  }
  return out;
}

int Gossip::shards() const {
  std::size_t smallest = members_.front().size();
  for (const auto& node : members_) smallest = std::min(smallest, node.size());
  return config_.hierarchy == Hierarchy::leader ? 1 : int(smallest);
}

comm::Range Gossip::shard_of(int shard_index) const {
  return comm::chunk_of(count_, shards(), shard_index, std::max<std::uint64_t>(1, config_.bucket));
}

// Adds to the worker's replica the values that all workers decode. If the whole shard is one
// bucket, the result depends on which worker owns which shard.
void Gossip::advance(int worker, const Vector& z, std::uint64_t number) {
  const kernels::Format format = {kernels::Codec::quantized, std::uint8_t(config_.bits),
                                  config_.rounding == Rounding::stochastic,
                                  std::uint32_t(config_.bucket)};
  const kernels::Kernels& kernels = *device::host().kernels();
  for (int shard_index = 0; shard_index < shards(); ++shard_index) {
    const comm::Range shard = shard_of(shard_index);
    const kernels::RandomStream draw = {
        config_.seed, std::uint32_t(members_[std::size_t(worker)][std::size_t(shard_index)]),
        number, shard.first};
    std::vector<std::byte> code(kernels::encoded_bytes(format, shard.count));
    Vector moved(shard.count);
    kernels.encode(format, draw, z.data() + shard.first, nullptr, shard.count, code.data(),
                   nullptr);
    kernels.decode(format, code.data(), shard.count, moved.data(), nullptr);
    for (std::size_t i = 0; i < shard.count; ++i)
      replicas_[std::size_t(worker)][shard.first + i] += moved[i];
  }
}

std::vector<Gossip::Vector> Gossip::differences(const std::vector<Vector>& sums,
                                                std::uint64_t number) {
  std::vector<Vector> z(sums.size(), Vector(count_));
  for (int w = 0; w < workers(); ++w) {
    Vector& to = z[std::size_t(w)];
    const std::vector<Weight> others = row(w, 0);
    const float share = float(1 / double(members_[std::size_t(w)].size()));
    for (std::size_t i = 0; i < count_; ++i) to[i] = share * sums[std::size_t(w)][i];
    const auto add = [&](float weight, const Vector& replica) {
      for (std::size_t i = 0; i < count_; ++i) {
        const float product = weight * replica[i];
        to[i] += product;
      }
    };
    for (const Weight& other : others)
      add(float(other.weight), replicas_[std::size_t(other.worker)]);
    add(float(own(others) - 2), replicas_[std::size_t(w)]);
  }
  for (int w = 0; w < workers(); ++w) advance(w, z[std::size_t(w)], number);
  std::vector<Vector> results = replicas_;
  for (Vector& result : results)
    for (float& value : result) value *= float(ranks_);
  return results;
}

// Returns whether no rank's replica is further from the model than half the model's norm.
bool Gossip::fits(const std::vector<Vector>& in) const {
  for (std::size_t w = 0; w < members_.size(); ++w)
    for (int shard_index = 0; shard_index < shards(); ++shard_index) {
      const comm::Range shard = shard_of(shard_index);
      const Vector& model = in[std::size_t(members_[w][std::size_t(shard_index)])];
      double squares[2];
      device::host().kernels()->compare(replicas_[w].data() + shard.first,
                                        model.data() + shard.first, shard.count, squares, nullptr);
      if (!(squares[0] <= squares[1] / 4)) return false;
    }
  return true;
}

std::vector<Gossip::Vector> Gossip::call(const std::vector<Vector>& in, std::uint64_t number,
                                         std::uint64_t earlier) {
  std::vector<Vector> sums;
  for (const auto& node : members_) {
    sums.push_back(in[std::size_t(node[0])]);
    for (std::size_t k = 1; k < node.size(); ++k)
      for (std::size_t i = 0; i < count_; ++i) sums.back()[i] += in[std::size_t(node[k])][i];
  }
  const bool meet = (earlier + 1) % config_.interval == 0;
  const bool first = low_ && (replicas_.empty() || (meet && !fits(in)));
  std::vector<Vector> results;
  if (first) {
    const Vector sum = total(sums);
    Vector mean = sum;
    for (float& value : mean) value *= float(1.0 / ranks_);
    replicas_.assign(sums.size(), mean);
    results.assign(sums.size(), sum);
  } else if (low_ && meet) {
    results = differences(sums, number);
  } else if (meet && config_.peers == Peers::all) {
    results.assign(sums.size(), total(sums));
  } else {
    for (int w = 0; w < workers(); ++w) {
      const std::size_t size = members_[std::size_t(w)].size();
      results.push_back(meet ? average(sums, w, earlier / config_.interval) : sums[std::size_t(w)]);
      if (!meet)
        for (float& value : results.back()) value *= float(ranks_ / double(size));
    }
  }
  std::vector<Vector> out;
  for (std::size_t w = 0; w < members_.size(); ++w)
    for (std::size_t k = 0; k < members_[w].size(); ++k) out.push_back(results[w]);
  return out;
}
