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
    times_[0] = watched_ == 0 ? nanoseconds : std::min(times_[0], nanoseconds);
    return ++watched_ == kWatch;
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
  for (int candidate = 0; candidate < candidates_; ++candidate) {
    std::vector<std::uint64_t> own;
    for (std::size_t i = std::size_t(candidate); i < times_.size(); i += std::size_t(candidates_))
      own.push_back(times_[i]);
    if (const std::uint64_t time = median(own); time < least) {
      least = time;
      best_ = candidate;
    }
  }
  expected_ = 0;  // the first watch says what the winner takes when nothing else is tried between
  settled_ = true;
  watched_ = 0;
  times_.assign(1, 0);
}

void Tuner::watch() {
  const std::uint64_t now = times_[0];
  watched_ = 0;
  if (expected_ == 0) expected_ = now;
  const double ratio = double(now) / double(std::max<std::uint64_t>(expected_, 1));
  if (ratio <= kSlower && ratio >= kFaster) return;
  settled_ = false;
  trial_ = 0;
}

}  // namespace slimpi::algorithm
