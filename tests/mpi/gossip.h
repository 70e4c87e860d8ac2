// SPDX-License-Identifier: BSD-3-Clause
// The decentralized pair worked out once more, for all workers at once and in one process, from the
// schedule as it is documented. Codes come from the library's own quantizer, so results must agree
// byte for byte. Only one replica of each worker exists here: were a copy on some peer to differ
// from it by a bit, that peer's next result would.
#pragma once
#include <cstdint>
#include <vector>

#include "comm/node_layout.h"
#include "options/config.h"

class Gossip {
 public:
  using Vector = std::vector<float>;

  Gossip(const slimpi::Config& config, int ranks, std::size_t count);

  // Returns the results of all ranks in one compressed call; in[r] is the input of rank r. `number`
  // counts the compressed calls of the communicator from 1, `earlier` the calls on this buffer
  // before this call.
  std::vector<Vector> call(const std::vector<Vector>& in, std::uint64_t number,
                           std::uint64_t earlier);

  int workers() const { return int(members_.size()); }

 private:
  struct Weight {
    int worker;
    double weight;
  };
  std::vector<Weight> row(int worker, std::uint64_t round) const;  // others only; ring: left, right
  static double own(const std::vector<Weight>& row);
  Vector total(const std::vector<Vector>& sums) const;
  Vector average(const std::vector<Vector>& sums, int worker, std::uint64_t round) const;
  std::vector<Vector> differences(const std::vector<Vector>& sums, std::uint64_t number);
  bool fits(const std::vector<Vector>& in) const;
  int shards() const;  // of a worker
  slimpi::comm::Range shard_of(int shard_index) const;
  void advance(int worker, const Vector& z, std::uint64_t number);

  const slimpi::Config config_;
  const int ranks_;
  const std::size_t count_;
  const bool low_;
  std::vector<std::vector<int>> members_;  // ranks of each worker
  std::vector<Vector> replicas_;           // of each worker; empty before the first call
};
