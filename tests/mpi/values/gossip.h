// SPDX-License-Identifier: BSD-3-Clause
// Computes the results of the two decentralized algorithms independently of the library, for all
// workers in one process, from the documented schedule. Codes come from the library's own
// quantizer, so results must agree byte for byte. Each worker has only one replica here. If a
// peer's copy differed from it by a bit, the peer's next result would differ, too.
#pragma once
#include <cstdint>
#include <vector>

#include "comm/node_layout.h"
#include "options/config.h"

class Gossip {
 public:
  using Vector = std::vector<float>;

  Gossip(const slimpi::Config& config, int ranks, std::size_t count);

  // Returns the results of all ranks in one compressed call. in[r] is the input of rank r, `number`
  // the number of the call among the communicator's compressed calls, from 1, and `earlier` the
  // number of earlier calls on this buffer.
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
