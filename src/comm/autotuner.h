// SPDX-License-Identifier: BSD-3-Clause
// Finds the fastest of several candidates, such as a plan or plain MPI, for sums of one size. Each
// trial times one of the program's own sums under one candidate; candidates that come close meet in
// a run-off, and the winner then runs every sum. The trials are repeated when the winner's time
// drifts, and now and then anyway, since a rejected candidate may have been unlucky. Because all
// times are reduced over the ranks (by the caller, as this class does not communicate), every rank
// picks the same winner. Only the constructor allocates memory, so that no rank can run out of it
// between trials and then pick another one.
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

class Autotuner {
 public:
  explicit Autotuner(int candidates);

  // Returns the candidate for the next call, which is the same on all ranks, because it follows
  // from times that they have agreed on.
  int next() const;

  // Records the time of the call that ran the candidate of next(). If this returns true, the ranks
  // must agree: the caller replaces each of times_to_agree() by its minimum over all ranks and
  // calls agreed(). The minimum is the time of the call itself, because the rank that comes last
  // waits for nobody.
  bool record(std::uint64_t nanoseconds);
  std::span<std::uint64_t> times_to_agree() { return times_; }
  void agreed();

  bool settled() const { return stage_ == Stage::settled; }

  // In a round each candidate has one trial. The first round includes set-up costs and is not used.
  static constexpr int kRounds = 4;
  // In a run-off each candidate runs kInARow calls in a row, kRepeats times. The first kUncounted
  // calls of a row are not timed, because they find the caches as the previous candidate left them.
  static constexpr int kInARow = 8, kUncounted = 2, kRepeats = 3;
  // A candidate that takes longer than this many times the fastest one is left out of the run-off.
  static constexpr double kRunoffRatio = 1.3;
  // How many calls of the winner lie between two checks for drift.
  static constexpr int kWatch = 64;
  // Without drift, new trials wait until this many times the cost of the last trials has passed.
  static constexpr int kCostRatio = 100;

 private:
  // In `rounds` and `runoff` the candidates have trials. In `settled`, best_ runs every call and is
  // watched for drift. Only agreed() changes the stage, so all ranks change it at the same call.
  enum class Stage { rounds, runoff, settled };

  void start_rounds();
  int place_of(int trial) const;
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
  std::uint64_t expected_ = 0;  // the median of the winner's first kWatch times, in ns; 0: none
  double until_again_ = 0;      // calls until new trials if there is no drift
  // Times in nanoseconds, in the order of the calls: of the trials of this stage or, when settled,
  // of the calls since the last check.
  std::vector<std::uint64_t> times_;
  // medians_ has the median time of each candidate in trial, in the order of in_trial_, in
  // nanoseconds and at least 1. of_one_ has the counted times of one candidate.
  std::vector<std::uint64_t> medians_, of_one_;
};

// The autotuners of a communicator, by row of SLIMPI_RULES and by size_class() of
// call/candidates.cpp.
class Autotuners : public Attachment {
 public:
  // Sets *found to the autotuner for sums of `size_class` under row number `row` of SLIMPI_RULES.
  // The first call with this row and class makes the autotuner and is collective: if some rank has
  // no memory, *found is null on all ranks. Later calls send nothing.
  Status find_or_make_together(Communicator& communicator, int row, std::size_t size_class,
                               int candidates, Autotuner** found);

 private:
  void options_changed() override { made_.clear(); }
  void layout_changed() override { made_.clear(); }

  std::map<std::pair<int, std::size_t>, std::unique_ptr<Autotuner>> made_;
};

// Records the time of the call that ran the candidate of autotuner.next(). If the ranks must agree,
// replaces the times by their minima over all ranks and calls agreed().
Status record_time(Communicator& communicator, Autotuner& autotuner, std::uint64_t nanoseconds);

}  // namespace slimpi::comm
