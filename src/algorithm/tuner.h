// SPDX-License-Identifier: BSD-3-Clause
// Chooses the fastest of several ways to answer calls of one size, on the program's own calls: a
// few rounds of trials, then the winner, watched, with new trials when its time drifts, and now and
// then without cause, since a loser may have been unlucky or have become faster. All ranks choose
// alike because they compare times that were reduced over all of them; this class is the pure part,
// the reduction is the caller's.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace slimpi::algorithm {

class Tuner {
 public:
  explicit Tuner(int candidates) : candidates_(candidates) {}

  // The candidate that answers the next call; alike on all ranks that reported alike.
  int next() const;

  // Takes the time of the call that next() was asked for. True when it is time to agree: then the
  // caller replaces each of times_to_agree() by its minimum over all ranks and calls agreed(). The
  // minimum, because the rank that comes last waits for nobody: its time is the call's own.
  bool record(std::uint64_t nanoseconds);
  std::span<std::uint64_t> times_to_agree() { return times_; }
  void agreed();

  bool settled() const { return settled_; }

  // The first round is not counted: it pays for set-up.
  static constexpr int kRounds = 4;
  // Calls between two looks at whether the times still hold.
  static constexpr int kWatch = 64;
  // New trials without cause wait until this many times what they cost has passed.
  static constexpr int kPrice = 100;

 private:
  void settle();
  void watch();

  int candidates_;
  bool settled_ = false;
  int trial_ = 0;  // trials made of this series
  int best_ = 0;
  std::uint64_t expected_ = 0;        // nanoseconds of the winner when it won
  double until_again_ = 0;            // calls until new trials without cause
  std::vector<std::uint64_t> times_;  // of the trials, or of the calls since the last look
};

}  // namespace slimpi::algorithm
