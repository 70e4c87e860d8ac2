// SPDX-License-Identifier: BSD-3-Clause
// Words between the first of the node-local ranks, the leader, and each other one, by messages. For
// the steps before there is shared memory.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "comm/exchange.h"
#include "comm/node_layout.h"

namespace slimpi::intra {

class LeaderWords {
 public:
  LeaderWords(comm::Exchange& exchange, const comm::NodeLayout& layout)
      : exchange_(exchange), node_local_ranks_(layout.node_ranks()), local_(layout.local_rank()) {}

  int ranks() const { return int(node_local_ranks_.size()); }

  // With the node-local rank `local`, which does the opposite at the same step. Each waits until
  // its message is complete; of two ranks one sends while the other receives, so none waits for
  // ever.
  Status send(int local, std::span<const std::uint64_t> words);
  Status receive(int local, std::span<std::uint64_t> words);

  // Collective over the node. Gives the leader's words to all.
  Status publish(std::span<std::uint64_t> words);

  // Collective over the node. Sets *good to whether it is true on all its ranks.
  Status agree(bool* good);

 private:
  bool leads() const { return local_ == 0; }

  comm::Exchange& exchange_;
  const std::vector<int>& node_local_ranks_;
  const int local_;
};

}  // namespace slimpi::intra
