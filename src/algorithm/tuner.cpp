// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/tuner.h"

#include <algorithm>

namespace slimpi::algorithm {

namespace {
// How far the time of the winner may wander before the others get another chance.
constexpr double kSlower = 1.3, kFaster = 0.7;

std::uint64_t median(std::span<std::uint64_t> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
}  // namespace

int Tuner::next() const {
  return settled_ ? best_ : trial_ % candidates_;
}

bool Tuner::record(std::uint64_t nanoseconds) {
  if (settled_) {
    times_.push_back(nanoseconds);
    return times_.size() == std::size_t(kWatch);
  }
  if (trial_ == 0) times_.clear();
  if (trial_ >= candidates_) times_.push_back(nanoseconds);
  return ++trial_ == candidates_ * kRounds;
}

void Tuner::agreed() {
  if (settled_)
    watch();
  else
    settle();
}

void Tuner::settle() {
  std::uint64_t least = UINT64_MAX;
  double all = 0;
  for (int candidate = 0; candidate < candidates_; ++candidate) {
    std::vector<std::uint64_t> own;
    for (std::size_t i = std::size_t(candidate); i < times_.size(); i += std::size_t(candidates_))
      own.push_back(times_[i]);
    const std::uint64_t time = std::max<std::uint64_t>(median(own), 1);
    all += double(time);
    if (time < least) {
      least = time;
      best_ = candidate;
    }
  }
  until_again_ = kPrice * kRounds * (all / double(least) - 1);
  expected_ = 0;  // the first watch says what the winner takes when nothing else is tried between
  settled_ = true;
  times_.clear();
}

void Tuner::watch() {
  const std::uint64_t now = median(times_);
  times_.clear();
  if (expected_ == 0) expected_ = now;
  until_again_ -= kWatch;
  const double ratio = double(now) / double(std::max<std::uint64_t>(expected_, 1));
  if (ratio <= kSlower && ratio >= kFaster && until_again_ > 0) return;
  settled_ = false;
  trial_ = 0;
}

}  // namespace slimpi::algorithm
