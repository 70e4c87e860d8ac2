// SPDX-License-Identifier: BSD-3-Clause
// Under SLIMPI_INTRA=auto: whether calls of one size class work inside the node in pieces, during
// the exchange between nodes, or before and after it. The first hides the work behind the link; the
// second copies faster. So the program's own calls are timed: three in pieces, two at once, and
// again after kSettled calls.
//
// All ranks of the node make the same trials at the same calls, because all count every call, and
// each judges by its own times. A call works in pieces if all of them want that. Nodes need not
// agree: the messages between them are the same.
#pragma once
#include <algorithm>
#include <cstdint>

namespace slimpi::intra {

class OverlapTrials {
 public:
  static constexpr int kInPieces = 3, kAtOnce = 2;
  static constexpr int kSettled = 1000;  // calls between two series of trials
  // Working at once must take less than this share of the time in pieces.
  static constexpr double kFaster = 0.95;

  // Counts a call; whether it works in pieces.
  bool next() {
    if (++call_ > kInPieces + kAtOnce + kSettled) {
      call_ = 1;
      least_[0] = least_[1] = UINT64_MAX;
    }
    if (call_ > kInPieces + kAtOnce) return in_pieces_;
    return call_ <= kInPieces;
  }

  // Nanoseconds of the current call, and how it worked. The first of a series does not count,
  // because it may contain set-up costs.
  void record(std::uint64_t nanoseconds, bool in_pieces) {
    if (call_ == 1 || call_ > kInPieces + kAtOnce) return;
    least_[in_pieces] = std::min(least_[in_pieces], nanoseconds);
    if (call_ == kInPieces + kAtOnce) in_pieces_ = double(least_[0]) >= kFaster * double(least_[1]);
  }

 private:
  int call_ = 0;  // number of the current call in its series, from 1
  bool in_pieces_ = true;
  std::uint64_t least_[2] = {UINT64_MAX, UINT64_MAX};  // nanoseconds at once, in pieces
};

}  // namespace slimpi::intra
