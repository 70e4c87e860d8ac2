// SPDX-License-Identifier: BSD-3-Clause
// Chooses the fastest of several ways to answer calls of one size, on the program's own calls: a
// few rounds of trials, a final of those that were about as fast, then the winner, watched, with
// new trials when its time drifts, and now and then without cause, since a rejected candidate may
// have been unlucky or have become faster. All ranks choose alike because they compare times that
// were reduced over all of them; this class is the pure part, the reduction is the caller's.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace slimpi::comm {

class Autotuner {
 public:
  explicit Autotuner(int candidates);

  // The candidate that answers the next call; alike on all ranks that reported alike.
  int next() const;

  // Takes the time of the call that next() was asked for. True when it is time to agree: then the
  // caller replaces each of times_to_agree() by its minimum over all ranks and calls agreed(). The
  // minimum, because the rank that comes last waits for nobody: its time is the call's own.
  bool record(std::uint64_t nanoseconds);
  std::span<std::uint64_t> times_to_agree() { return times_; }
  void agreed();

  bool settled() const { return stage_ == Stage::settled; }

  // The first round is not counted: it pays for set-up.
  static constexpr int kRounds = 4;
  // In a final each makes this many calls in a row, of which the first are not counted, since what
  // the caches hold depends on the call before; and it has as many turns.
  static constexpr int kInARow = 8, kUncounted = 2, kRepeats = 3;
  // Who takes longer than this many times the fastest is not in the final.
  static constexpr double kRunoffRatio = 1.3;
  // Calls between two looks at whether the times still hold.
  static constexpr int kWatch = 64;
  // New trials without cause wait until this many times what they cost has passed.
  static constexpr int kCostRatio = 100;

 private:
  enum class Stage { rounds, runoff, settled };

  void start();
  std::vector<std::uint64_t> medians() const;
  void choose_runoff();
  void settle();
  void watch();

  int candidates_;
  std::vector<int> in_trial_;  // those that take turns now
  Stage stage_ = Stage::rounds;
  int trial_ = 0;  // trials made in this stage
  int best_ = 0;
  std::uint64_t expected_ = 0;        // nanoseconds of the winner when it won
  double until_again_ = 0;            // calls until new trials without cause
  std::vector<std::uint64_t> times_;  // of the trials, or of the calls since the last look
};

}  // namespace slimpi::comm
