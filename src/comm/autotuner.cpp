// SPDX-License-Identifier: BSD-3-Clause
#include "comm/autotuner.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace slimpi::comm {

namespace {
// Drift: the winner's time, divided by its expected time, is above kSlower or below kFaster.
constexpr double kSlower = 1.3, kFaster = 0.7;

// The trials of a careful start, of two candidates. The first trial of each contains set-up costs.
struct CarefulTrial {
  int candidate, if_second_leads;  // the candidate, and the one where the second leads by now
  bool counts = true;              // in the end
  bool compares = false;           // after it the ranks decide whether the second leads
};
constexpr CarefulTrial kCareful[] = {
    {0, 0, false},
    {0, 0},
    {0, 0},
    {1, 1, false, true},
    {0, 1},
    {0, 1},
    {0, 1},
    {0, 0},
    {1, 1, true, true},
    {0, 1},
    {1, 0},
    {0, 1},
    {1, 1},
    {0, 0},
};
// The second candidate leads when one call of it takes less than this many times the best of the
// first.
constexpr double kClearly = 0.85;

std::uint64_t median(std::span<std::uint64_t> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The sum of all times but the smallest, divided by the smallest.
double cost_of_others(const std::vector<std::uint64_t>& times) {
  const double all = double(std::accumulate(times.begin(), times.end(), std::uint64_t(0)));
  return all / double(*std::min_element(times.begin(), times.end())) - 1;
}
}  // namespace

Autotuner::Autotuner(int candidates, Start start) : candidates_(candidates) {
  // The most times that any stage holds. No later push_back allocates, so no rank can fail in the
  // middle of trials.
  const std::size_t most = std::max<std::size_t>(
      kWatch, std::size_t(candidates) * std::max(kRounds, kInARow * kRepeats));
  times_.reserve(std::max(most, std::size(kCareful)));
  of_one_.reserve(times_.capacity());
  in_trial_.reserve(std::size_t(candidates));
  medians_.reserve(std::size_t(candidates));
  start_rounds();
  if (start == Start::careful && candidates == 2) stage_ = Stage::careful;
}

void Autotuner::start_rounds() {
  stage_ = Stage::rounds;
  trial_ = 0;
  times_.clear();
  in_trial_.resize(std::size_t(candidates_));
  std::iota(in_trial_.begin(), in_trial_.end(), 0);
}

// The position in in_trial_ of the candidate that a trial of this stage tries. It depends on the
// trial's number and on agreed state only, so it is the same on all ranks.
int Autotuner::candidate_of(int trial) const {
  if (stage_ == Stage::careful)
    return trial < leads_from_ ? kCareful[trial].candidate : kCareful[trial].if_second_leads;
  return (stage_ == Stage::rounds ? trial : trial / kInARow) % int(in_trial_.size());
}

// Whether a trial of this stage counts when its candidates are compared.
bool Autotuner::counts(int trial) const {
  if (stage_ == Stage::careful) return kCareful[trial].counts;
  return stage_ == Stage::rounds ? trial >= int(in_trial_.size()) : trial % kInARow >= kUncounted;
}

// Trials in this stage.
int Autotuner::trials() const {
  if (stage_ == Stage::careful) return int(std::size(kCareful));
  return int(in_trial_.size()) * (stage_ == Stage::rounds ? kRounds : kInARow * kRepeats);
}

int Autotuner::next() const {
  return stage_ == Stage::settled ? best_ : in_trial_[std::size_t(candidate_of(trial_))];
}

bool Autotuner::record(std::uint64_t nanoseconds) {
  times_.push_back(nanoseconds);
  if (stage_ == Stage::settled) return times_.size() == std::size_t(kWatch);
  // It depends on the number of trials and on leads_from_ only: all ranks agree after the same
  // call, whatever their times were.
  const bool compares =
      stage_ == Stage::careful && kCareful[trial_].compares && leads_from_ == INT_MAX;
  return ++trial_ == trials() || compares;
}

void Autotuner::agreed() {
  // times_ now holds the minima over all ranks, so every decision below is the same on all of them.
  switch (stage_) {
    case Stage::careful:
      return trial_ < trials() ? compare_second() : choose_runoff();
    case Stage::rounds:
      return choose_runoff();
    case Stage::runoff:
      return settle();
    case Stage::settled:
      return watch();
  }
}

// After a trial that compares, which is one of the second candidate.
void Autotuner::compare_second() {
  std::uint64_t best = UINT64_MAX;
  for (int trial = 1; trial < trial_; ++trial)
    if (candidate_of(trial) == 0) best = std::min(best, times_[std::size_t(trial)]);
  if (double(times_.back()) < kClearly * double(best)) leads_from_ = trial_;
}

// A median, because one interrupted call must not decide. At least one nanosecond, because times
// are divided by it.
void Autotuner::find_medians() {
  medians_.clear();
  for (int place = 0; place < int(in_trial_.size()); ++place) {
    of_one_.clear();
    for (int trial = 0; trial < trial_; ++trial)
      if (counts(trial) && candidate_of(trial) == place)
        of_one_.push_back(times_[std::size_t(trial)]);
    medians_.push_back(std::max<std::uint64_t>(median(of_one_), 1));
  }
}

void Autotuner::choose_runoff() {
  find_medians();
  const double least = double(*std::min_element(medians_.begin(), medians_.end()));
  // In calls of the fastest candidate, as watch() counts them down.
  until_again_ = kCostRatio * kRounds * cost_of_others(medians_);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < medians_.size(); ++i)
    if (double(medians_[i]) <= kRunoffRatio * least) in_trial_[kept++] = in_trial_[i];
  in_trial_.resize(kept);
  stage_ = Stage::runoff;
  trial_ = 0;
  times_.clear();
  if (in_trial_.size() == 1) settle();
}

void Autotuner::settle() {
  best_ = in_trial_.front();
  if (in_trial_.size() > 1) {
    find_medians();
    best_ = in_trial_[std::size_t(std::min_element(medians_.begin(), medians_.end()) -
                                  medians_.begin())];
    // Only the extra time of the other candidates is a cost: the winner's calls had to be made
    // anyway.
    const double others = double(medians_.size()) - 1;
    until_again_ += kCostRatio * kInARow * kRepeats * (cost_of_others(medians_) - others);
  }
  expected_ = 0;  // the first watch sets it: the winner's time with no trials in between
  stage_ = Stage::settled;
  times_.clear();
}

void Autotuner::watch() {
  const std::uint64_t now = median(times_);
  times_.clear();
  // Slower and faster both start trials: either may favor another candidate.
  if (expected_ == 0) expected_ = now;
  until_again_ -= kWatch;
  const double ratio = double(now) / double(std::max<std::uint64_t>(expected_, 1));
  if (ratio <= kSlower && ratio >= kFaster && until_again_ > 0) return;
  start_rounds();
}

}  // namespace slimpi::comm
