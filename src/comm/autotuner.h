// SPDX-License-Identifier: BSD-3-Clause
// Finds the fastest of several candidates for calls of one size by timing the program's own calls.
// First come a few trials, then a run-off between candidates that were about as fast as each other.
// The winner is then used for all calls, and its time is watched. New trials start when that time
// drifts, and from time to time without a cause, because a rejected candidate may have had bad luck
// or may have become faster. All ranks choose the same candidate, because they compare times that
// were reduced over all ranks. This class does no communication; the caller does the reduction.
// Only the constructor allocates: a rank that failed in the middle of trials would choose otherwise
// than the others.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"

namespace slimpi::comm {

class Communicator;

class Autotuner {
 public:
  explicit Autotuner(int candidates);

  // The candidate for the next call; the same on all ranks that recorded and agreed on the same
  // times.
  int next() const;

  // Records the time of the call that next() was asked for. Returns true when the ranks must agree:
  // then the caller replaces each of times_to_agree() by its minimum over all ranks and calls
  // agreed(). It is the minimum because the rank that comes last waits for no other: its time is
  // that of the call itself.
  bool record(std::uint64_t nanoseconds);
  std::span<std::uint64_t> times_to_agree() { return times_; }
  void agreed();

  bool settled() const { return stage_ == Stage::settled; }

  // Rounds of trials, one trial of each candidate in a round. The first round is not counted: it
  // contains set-up costs.
  static constexpr int kRounds = 4;
  // In a run-off each candidate makes kInARow calls in a row, kRepeats times. The first kUncounted
  // of each row are not counted, because what the caches hold depends on the call before.
  static constexpr int kInARow = 8, kUncounted = 2, kRepeats = 3;
  // A candidate that takes longer than this many times the fastest is not in the run-off.
  static constexpr double kRunoffRatio = 1.3;
  // Calls of the winner between two checks for drift.
  static constexpr int kWatch = 64;
  // New trials without a cause start only after this many times the cost of the last trials has
  // passed.
  static constexpr int kCostRatio = 100;

 private:
  // rounds and runoff: trials are made. settled: best_ is used and watched for drift. The stage
  // changes only in agreed(), and so on all ranks at the same call.
  enum class Stage { rounds, runoff, settled };

  void start_rounds();
  int candidate_of(int trial) const;
  bool counts(int trial) const;
  int trials() const;
  void find_medians();
  void choose_runoff();
  void settle();
  void watch();

  int candidates_;
  std::vector<int> in_trial_;  // candidates that have trials in this stage
  Stage stage_;
  int trial_ = 0;  // trials made in this stage
  int best_ = 0;
  std::uint64_t expected_ = 0;  // nanoseconds of the winner when it won
  double until_again_ = 0;      // calls until new trials without a cause
  // Nanoseconds: of the trials of this stage, in their order; when settled, since the last check.
  std::vector<std::uint64_t> times_;
  // The median time of each candidate in trial, in the order of in_trial_, in nanoseconds, at least
  // one; made by find_medians(). And what it works on.
  std::vector<std::uint64_t> medians_, of_one_;
};

// The autotuners of a communicator: whatever is chosen by time has its own here.
class Autotuners : public Attachment {
 public:
  // The one for the plans of a row of the rules, by its number, and a size class. Null where some
  // rank has no memory for it. Collective at the first call with these numbers, because later calls
  // may go to MPI without a message between the ranks.
  Status find(Communicator& communicator, int row, std::size_t size_class, int candidates,
              Autotuner** found);

 private:
  void options_changed() override { made_.clear(); }
  void layout_changed() override { made_.clear(); }

  std::map<std::pair<int, std::size_t>, std::unique_ptr<Autotuner>> made_;
};

// Records the time of the call that autotuner.next() was asked for, and agrees with the other ranks
// where that is due.
Status record_time(Communicator& communicator, Autotuner& autotuner, std::uint64_t nanoseconds);

}  // namespace slimpi::comm
