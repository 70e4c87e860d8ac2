// SPDX-License-Identifier: BSD-3-Clause
// Under SLIMPI_INTRA=auto: whether calls of one size class copy through message buffers in the
// shared segment or read other ranks' buffers in place. Both give the same bytes. Which is faster
// depends on the size, the caches and the kernel, so the program's own calls are timed: a few with
// message buffers, then a few in place, and again after kSettled calls.
//
// Each rank judges by its own times. All ranks make the same trials at the same calls, because all
// count every call. After the trials the ranks may judge differently; then the call uses message
// buffers, and disagreed() makes all ranks keep them until the next trials.
#pragma once
#include <algorithm>
#include <cstdint>

namespace slimpi::intra {

class CopyTrials {
 public:
  // Trials of each kind that count; the first one of each kind does not count, because it contains
  // set-up costs.
  static constexpr int kCounted = 3;
  static constexpr int kSettled = 1000;  // calls between two series of trials
  // Reading in place must take less than this share of the time with message buffers. A rank that
  // waits for others measures their time, so near-ties keep the message buffers.
  static constexpr double kFaster = 0.9;

  // Counts a call; whether it reads in place.
  bool next() {
    if (++call_ > kTrials + kSettled) {
      call_ = 1;
      least_[0] = least_[1] = UINT64_MAX;
    }
    return trial() ? call_ > kTrials / 2 : in_place_;
  }

  // Whether the current call is a trial, whose time record() needs.
  bool trial() const { return call_ <= kTrials; }

  // Nanoseconds of the current trial.
  void record(std::uint64_t nanoseconds) {
    const bool in_place = call_ > kTrials / 2;
    const bool first = (call_ - 1) % (kTrials / 2) == 0;
    if (!first) least_[in_place] = std::min(least_[in_place], nanoseconds);
    if (call_ == kTrials)
      in_place_ = least_[0] != UINT64_MAX && double(least_[1]) < kFaster * double(least_[0]);
  }

  // The ranks of the node did not agree on the way of the current call.
  void disagreed() { in_place_ = false; }

 private:
  static constexpr int kTrials = 2 * (kCounted + 1);
  int call_ = 0;  // number of the current call in its series, from 1
  bool in_place_ = false;
  std::uint64_t least_[2] = {UINT64_MAX, UINT64_MAX};  // nanoseconds with buffers, in place
};

}  // namespace slimpi::intra
