// SPDX-License-Identifier: BSD-3-Clause
#include "comm/autotuner.h"

#include <algorithm>
#include <numeric>

#include "base/exceptions.h"
#include "comm/communicator.h"
#include "observe/log.h"

namespace slimpi::comm {

namespace {
// The winner drifts if its time, divided by the expected time, is above kSlower or below kFaster.
constexpr double kSlower = 1.3, kFaster = 0.7;

std::uint64_t median(std::span<std::uint64_t> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Returns the cost of the other candidates: the sum of all times but the smallest, in units of the
// smallest.
double cost_of_others(const std::vector<std::uint64_t>& times) {
  const double all = double(std::accumulate(times.begin(), times.end(), std::uint64_t(0)));
  return all / double(*std::min_element(times.begin(), times.end())) - 1;
}
}  // namespace

Autotuner::Autotuner(int candidates) : candidates_(candidates) {
  // Reserve room for as many times as any stage records, so that no later push_back() allocates,
  // which could fail.
  times_.reserve(std::max<std::size_t>(
      kWatch, std::size_t(candidates) * std::max(kRounds, kInARow * kRepeats)));
  of_one_.reserve(times_.capacity());
  in_trial_.reserve(std::size_t(candidates));
  medians_.reserve(std::size_t(candidates));
  start_rounds();
}

void Autotuner::start_rounds() {
  stage_ = Stage::rounds;
  trial_ = 0;
  times_.clear();
  in_trial_.resize(std::size_t(candidates_));
  std::iota(in_trial_.begin(), in_trial_.end(), 0);
}

// Returns which candidate a trial of this stage runs, as an index in in_trial_. It depends only on
// the trial's number and on agreed state, so all ranks run the same one.
int Autotuner::place_of(int trial) const {
  return (stage_ == Stage::rounds ? trial : trial / kInARow) % int(in_trial_.size());
}

// Returns whether the time of this trial counts in the comparison.
bool Autotuner::counts(int trial) const {
  return stage_ == Stage::rounds ? trial >= int(in_trial_.size()) : trial % kInARow >= kUncounted;
}

int Autotuner::trials() const {
  return int(in_trial_.size()) * (stage_ == Stage::rounds ? kRounds : kInARow * kRepeats);
}

int Autotuner::next() const {
  return stage_ == Stage::settled ? best_ : in_trial_[std::size_t(place_of(trial_))];
}

bool Autotuner::record(std::uint64_t nanoseconds) {
  times_.push_back(nanoseconds);
  if (stage_ == Stage::settled) return times_.size() == std::size_t(kWatch);
  // The number of trials decides, and not their times, so that all ranks agree after the same call.
  return ++trial_ == trials();
}

void Autotuner::agreed() {
  // times_ now has the minima over all ranks, so every decision below is the same on all ranks.
  switch (stage_) {
    case Stage::rounds:
      return choose_runoff();
    case Stage::runoff:
      return settle();
    case Stage::settled:
      return watch();
  }
}

// Finds the median time of each candidate in trial, so that no single interrupted call decides. A
// median is at least one nanosecond, because times are divided by it.
void Autotuner::find_medians() {
  medians_.clear();
  for (int place = 0; place < int(in_trial_.size()); ++place) {
    of_one_.clear();
    for (int trial = 0; trial < trial_; ++trial)
      if (counts(trial) && place_of(trial) == place) of_one_.push_back(times_[std::size_t(trial)]);
    medians_.push_back(std::max<std::uint64_t>(median(of_one_), 1));
  }
}

void Autotuner::choose_runoff() {
  find_medians();
  const double least = double(*std::min_element(medians_.begin(), medians_.end()));
  // How many calls the fastest candidate gets before new trials begin. watch() counts it down.
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
    // The program had to make its calls in any case, so the run-off costs only what the other
    // candidates took beyond the winner's time.
    const double others = double(medians_.size()) - 1;
    until_again_ += kCostRatio * kInARow * kRepeats * (cost_of_others(medians_) - others);
  }
  expected_ = 0;  // set by the first watch, which sees the winner without trials in between
  stage_ = Stage::settled;
  times_.clear();
}

void Autotuner::watch() {
  const std::uint64_t now = median(times_);
  times_.clear();
  // New trials begin whether the winner has become slower or faster, because after either change
  // another candidate may be the fastest.
  if (expected_ == 0) expected_ = now;
  until_again_ -= kWatch;
  const double ratio = double(now) / double(std::max<std::uint64_t>(expected_, 1));
  if (ratio <= kSlower && ratio >= kFaster && until_again_ > 0) return;
  start_rounds();
}

Status Autotuners::find_or_make_together(Communicator& communicator, int row,
                                         std::size_t size_class, int candidates,
                                         Autotuner** found) {
  const std::pair key(row, size_class);
  auto known = made_.find(key);
  if (known == made_.end()) {
    const Status here = caught([&] {
      auto made = std::make_unique<Autotuner>(candidates);
      known = made_.emplace(key, std::move(made)).first;
    });
    if (here != Status::ok) log_failure_once(LogLevel::warn, "some sums go to MPI on all ranks");
    bool all = here == Status::ok;
    SLIMPI_TRY(communicator.exchange().all_true(&all));
    // All ranks erase the new autotuner, so that the next call is collective again.
    if (!all) made_.erase(key);
    *found = all ? known->second.get() : nullptr;
    return Status::ok;
  }
  *found = known->second.get();
  return Status::ok;
}

Status record_time(Communicator& communicator, Autotuner& autotuner, std::uint64_t nanoseconds) {
  if (!autotuner.record(nanoseconds)) return Status::ok;
  SLIMPI_TRY(communicator.exchange().all_min(autotuner.times_to_agree()));
  autotuner.agreed();
  return Status::ok;
}

}  // namespace slimpi::comm
