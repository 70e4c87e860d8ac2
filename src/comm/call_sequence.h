// SPDX-License-Identifier: BSD-3-Clause
// Names buffers by the order of calls where their addresses say nothing: programs that allocate an
// array anew in every step, as NumPy programs do. Finds the period of a communicator's float sums
// from their counts. All decisions come from counts and from what the ranks agreed, so they are the
// same on every rank. Allocates nothing, so no rank can fail alone.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "comm/attachment.h"

namespace slimpi::comm {

class CallSequence : public Attachment {
 public:
  // A float sum of `count` elements begins; to be called wherever TensorStates::count_call is.
  void add(std::uint64_t count);

  // The smallest period of all sums so far; 0 while it is not known, or where it is longer than
  // kLongest. It has been seen three times.
  std::uint64_t period() const;

  // Whether this rank meets the buffer for the first time, as far as it remembers.
  bool meet(const void* address, std::uint64_t count);

  // `fresh`: some rank met its buffer for the first time. The same on all ranks.
  void agreed(bool fresh);

  // The period by which buffers are named from now on; 0: they are named by address. Changes in
  // update() only, which returns whether it did: then all state is to be dropped.
  std::uint64_t in_use() const { return in_use_; }
  bool update();

  static constexpr std::size_t kLeast = 16;      // sums before a period is believed
  static constexpr std::size_t kLongest = 1024;  // sums of the longest period

 private:
  static constexpr std::size_t kMost = 4 * kLongest, kSeen = 1024;
  bool has_unlike_counts(std::uint64_t period) const;
  std::uint64_t threshold(std::uint64_t period) const;

  std::size_t length_ = 0;   // sums in counts_
  std::size_t limit_ = 256;  // sums after which a sequence without a period starts over
  std::uint64_t in_use_ = 0;
  // Rises by 2 at a fresh buffer, falls by 1 at a known one.
  std::uint64_t score_ = 0;
  bool by_order_ = false;  // what score_ decided
  std::size_t seen_used_ = 0;
  std::array<std::uint64_t, kSeen> seen_{};  // open addressing; 0 is free
  // border_[i]: length of the longest proper prefix of the first i + 1 counts that is their suffix.
  std::array<std::uint16_t, kMost> border_;
  std::array<std::uint64_t, kMost> counts_;
};

}  // namespace slimpi::comm
