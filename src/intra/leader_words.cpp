// SPDX-License-Identifier: BSD-3-Clause
#include "intra/leader_words.h"

#include <algorithm>

namespace slimpi::intra {

// Settled one by one, so that no rank waits for a later message of a leader that has given up.
Status LeaderWords::send(int local, std::span<const std::uint64_t> words) {
  return exchange_.send_settled(node_local_ranks_[std::size_t(local)], comm::Tag::node_open,
                                words.data(), words.size_bytes());
}

Status LeaderWords::receive(int local, std::span<std::uint64_t> words) {
  return exchange_.receive_settled(node_local_ranks_[std::size_t(local)], comm::Tag::node_open,
                                   words.data(), words.size_bytes());
}

Status LeaderWords::publish(std::span<std::uint64_t> words) {
  // One after the other: this happens once for a communicator, among the ranks of one node.
  if (!leads()) return receive(0, words);
  for (int local = 1; local < ranks(); ++local) SLIMPI_TRY(send(local, words));
  return Status::ok;
}

Status LeaderWords::agree(bool* good) {
  std::uint64_t all = *good ? 1 : 0;
  // A minimum of 0 and 1. A rank that failed takes part like the others, so the messages match.
  if (leads())
    for (int local = 1; local < ranks(); ++local) {
      std::uint64_t theirs = 0;
      SLIMPI_TRY(receive(local, {&theirs, 1}));
      all = std::min(all, theirs);
    }
  else
    SLIMPI_TRY(send(0, {&all, 1}));
  SLIMPI_TRY(publish({&all, 1}));
  *good = all == 1;
  return Status::ok;
}

}  // namespace slimpi::intra
