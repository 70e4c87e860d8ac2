// SPDX-License-Identifier: BSD-3-Clause
// Under SLIMPI_INTRA=auto: which of two ways does the calls of one size class faster. Both give the
// same bytes. Which is faster depends on the size, the caches, the kernel and the link, so the
// program's own calls are timed: a few of the first way, then a few of the second, and again after
// kSettled calls.
//
// All ranks of the node make the same trials at the same calls, because all count every call. Each
// rank judges by its own times, so the ranks may judge differently; the callers say what then
// happens.
#pragma once
#include <algorithm>
#include <cstdint>

namespace slimpi::intra {

struct TrialRule {
  int trials[2];     // of each way, in one series
  int uncounted[2];  // the first of these do not count: they may contain set-up costs
  // The second way must take less than this share of the time of the first. A rank that waits for
  // others measures their time, so near-ties keep the first.
  double faster;
  bool second_if_untimed;  // used where a series has no time of the first way
};

// First with message buffers in the shared segment, second reading other ranks' buffers in place.
constexpr TrialRule kCopyTrials = {{4, 4}, {1, 1}, 0.9, false};

// First in pieces during the exchange between nodes, second at once before and after it. The first
// hides the work behind the link; the second copies faster.
constexpr TrialRule kOverlapTrials = {{3, 2}, {1, 0}, 0.95, true};

class TwoWayTrials {
 public:
  explicit TwoWayTrials(const TrialRule& rule) : rule_(rule) {}

  static constexpr int kSettled = 1000;  // calls between two series of trials

  // Counts a call; whether it goes the second way.
  bool next() {
    if (++call_ > series() + kSettled) {
      call_ = 1;
      least_[0] = least_[1] = UINT64_MAX;
    }
    return second();
  }

  // Of the current call: whether it goes the second way, and whether it is a trial.
  bool second() const { return trial() ? call_ > rule_.trials[0] : second_is_faster_; }
  bool trial() const { return call_ <= series(); }

  // Nanoseconds of the current call, and the way that it counts for. Ignored unless it is a trial.
  void record(std::uint64_t nanoseconds, bool second_way) {
    if (!trial()) return;
    const int number = call_ - (second() ? rule_.trials[0] : 0);
    if (number > rule_.uncounted[second()])
      least_[second_way] = std::min(least_[second_way], nanoseconds);
    if (call_ == series())
      second_is_faster_ = least_[0] == UINT64_MAX
                              ? rule_.second_if_untimed
                              : double(least_[1]) < rule_.faster * double(least_[0]);
  }

  // The ranks of the node judged differently: the first way, until the next trials.
  void disagreed() { second_is_faster_ = false; }

 private:
  int series() const { return rule_.trials[0] + rule_.trials[1]; }

  const TrialRule& rule_;
  int call_ = 0;  // number of the current call in its series, from 1
  bool second_is_faster_ = false;
  std::uint64_t least_[2] = {UINT64_MAX, UINT64_MAX};  // nanoseconds of each way
};

}  // namespace slimpi::intra
