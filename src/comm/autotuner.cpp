// SPDX-License-Identifier: BSD-3-Clause
#include "comm/autotuner.h"

#include <algorithm>
#include <numeric>

namespace slimpi::comm {

namespace {
// Drift: the winner's time, divided by its expected time, is above kSlower or below kFaster.
constexpr double kSlower = 1.3, kFaster = 0.7;

std::uint64_t median(std::span<std::uint64_t> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The sum of all times divided by the smallest.
double beside_least(const std::vector<std::uint64_t>& times) {
  const double all = double(std::accumulate(times.begin(), times.end(), std::uint64_t(0)));
  return all / double(*std::min_element(times.begin(), times.end())) - 1;
}
}  // namespace

Autotuner::Autotuner(int candidates) : candidates_(candidates) {
  start();
}

void Autotuner::start() {
  stage_ = Stage::rounds;
  trial_ = 0;
  times_.clear();
  in_trial_.resize(std::size_t(candidates_));
  std::iota(in_trial_.begin(), in_trial_.end(), 0);
}

int Autotuner::next() const {
  if (stage_ == Stage::settled) return best_;
  const int index = stage_ == Stage::rounds ? trial_ : trial_ / kInARow;
  return in_trial_[std::size_t(index) % in_trial_.size()];
}

bool Autotuner::record(std::uint64_t nanoseconds) {
  const int number = trial_++, taking_part = int(in_trial_.size());
  switch (stage_) {
    case Stage::rounds:
      if (number >= taking_part) times_.push_back(nanoseconds);
      return trial_ == taking_part * kRounds;
    case Stage::runoff:
      if (number % kInARow >= kUncounted) times_.push_back(nanoseconds);
      return trial_ == taking_part * kInARow * kRepeats;
    case Stage::settled:
      times_.push_back(nanoseconds);
      return times_.size() == std::size_t(kWatch);
  }
  return false;
}

void Autotuner::agreed() {
  switch (stage_) {
    case Stage::rounds:
      return choose_runoff();
    case Stage::runoff:
      return settle();
    case Stage::settled:
      return watch();
  }
}

// The median time of each candidate in trial, in the order of in_trial_; at least one nanosecond.
std::vector<std::uint64_t> Autotuner::medians() const {
  const std::size_t taking_part = in_trial_.size();
  const std::size_t in_a_row = stage_ == Stage::runoff ? kInARow - kUncounted : 1;
  std::vector<std::uint64_t> result;
  for (std::size_t which = 0; which < taking_part; ++which) {
    std::vector<std::uint64_t> own;
    for (std::size_t i = 0; i < times_.size(); ++i)
      if (i / in_a_row % taking_part == which) own.push_back(times_[i]);
    result.push_back(std::max<std::uint64_t>(median(own), 1));
  }
  return result;
}

void Autotuner::choose_runoff() {
  const std::vector<std::uint64_t> times = medians();
  const double least = double(*std::min_element(times.begin(), times.end()));
  until_again_ = kCostRatio * kRounds * beside_least(times);
  std::vector<int> runoff_candidates;
  for (std::size_t i = 0; i < times.size(); ++i)
    if (double(times[i]) <= kRunoffRatio * least) runoff_candidates.push_back(in_trial_[i]);
  in_trial_ = std::move(runoff_candidates);
  stage_ = Stage::runoff;
  trial_ = 0;
  times_.clear();
  if (in_trial_.size() == 1) settle();
}

void Autotuner::settle() {
  best_ = in_trial_.front();
  if (in_trial_.size() > 1) {
    const std::vector<std::uint64_t> times = medians();
    best_ = in_trial_[std::size_t(std::min_element(times.begin(), times.end()) - times.begin())];
    // Only the extra time of the other candidates is a cost: the winner's calls had to be made
    // anyway.
    const double others = double(times.size()) - 1;
    until_again_ += kCostRatio * kInARow * kRepeats * (beside_least(times) - others);
  }
  expected_ = 0;  // the first watch sets it: the winner's time with no trials in between
  stage_ = Stage::settled;
  times_.clear();
}

void Autotuner::watch() {
  const std::uint64_t now = median(times_);
  times_.clear();
  if (expected_ == 0) expected_ = now;
  until_again_ -= kWatch;
  const double ratio = double(now) / double(std::max<std::uint64_t>(expected_, 1));
  if (ratio <= kSlower && ratio >= kFaster && until_again_ > 0) return;
  start();
}

}  // namespace slimpi::comm
