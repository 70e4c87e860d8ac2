// SPDX-License-Identifier: BSD-3-Clause
#include "comm/call_sequence.h"

#include <algorithm>
#include <utility>

namespace slimpi::comm {

// One step of the prefix function of Knuth, Morris and Pratt: constant time on average. The calls
// before the first step of a program often have no period, so a sequence without one starts over,
// with twice the limit.
void CallSequence::add(std::uint64_t count) {
  ++calls_;
  if (length_ == limit_) {
    const std::uint64_t known = period();
    // A prefix of a periodic sequence that ends at the same place of the period. It is shorter than
    // kMost, because no period is longer than kLongest.
    const std::size_t shorter = known == 0 ? 0 : 3 * known + length_ % known;
    if (known == 0 || shorter == length_) limit_ = std::min(2 * limit_, kMost);
    length_ = shorter;
  }
  std::size_t border = length_ == 0 ? 0 : border_[length_ - 1];
  while (border > 0 && counts_[border] != count) border = border_[border - 1];
  if (length_ > 0 && counts_[border] == count) ++border;
  counts_[length_] = count;
  border_[length_] = std::uint16_t(border);
  ++length_;
}

std::uint64_t CallSequence::period() const {
  if (length_ < kLeast) return 0;
  // A sequence without its longest border has the length of its smallest period.
  const std::size_t least = length_ - border_[length_ - 1];
  return 3 * least <= length_ && least <= kLongest ? least : 0;
}

CallSequence::Use CallSequence::note_use(const void* address, std::uint64_t count) {
  // The table forgets everything before searches in it become long. The next use of each buffer
  // then counts as its first, once.
  if (seen_used_ >= kSeen * 3 / 4) {
    seen_.fill({});
    seen_used_ = 0;
  }
  // Odd, and so is its product with an odd number. So it is never 0, which marks a free place.
  std::uint64_t key =
      (std::uint64_t(reinterpret_cast<std::uintptr_t>(address)) << 1 | 1) ^ (count << 48);
  key *= 0x9E3779B97F4A7C15u;
  std::size_t at = key >> 54;
  while (seen_[at].key != 0 && seen_[at].key != key) at = (at + 1) % kSeen;
  Seen& seen = seen_[at];
  if (seen.key == 0) {
    seen = {key, calls_, 0};
    ++seen_used_;
    return Use::first;
  }
  const std::uint64_t distance = calls_ - std::exchange(seen.last_use, calls_);
  const std::uint64_t before = std::exchange(seen.distance, distance);
  return before != 0 && distance != before ? Use::irregular : Use::known;
}

bool CallSequence::has_unlike_counts(std::uint64_t period) const {
  return std::any_of(counts_.begin() + 1, counts_.begin() + std::ptrdiff_t(period),
                     [&](std::uint64_t count) { return count != counts_[0]; });
}

// First uses of buffers before the order of calls is used. Where all counts are equal the step may
// have more sums than the period, so more evidence is wanted.
std::uint64_t CallSequence::threshold(std::uint64_t period) const {
  return has_unlike_counts(period) ? std::max<std::uint64_t>(kLeast, 2 * period) : 64;
}

void CallSequence::agreed(Use use) {
  const std::uint64_t known = period();
  const std::uint64_t enough = known == 0 ? kMost : 2 * threshold(known);
  // The scores have upper limits, so a program that returns to fixed buffers is noticed after a
  // limited number of calls.
  if (use == Use::first) {
    score_ = std::min(score_ + 2, 2 * enough);
  } else if (use == Use::irregular) {
    irregular_ = std::min(irregular_ + 2, 2 * kOften);
  } else {
    if (score_ > 0) --score_;
    if (irregular_ > 0) --irregular_;
  }
  suspect_ = use == Use::irregular && calls_ <= kLearning;
  if (score_ == 0 && irregular_ == 0) by_order_ = false;
  // Where all counts are equal, the period of the counts may be shorter than a step.
  if (known != 0 && (score_ >= enough || (often_irregular() && has_unlike_counts(known))))
    by_order_ = true;
}

bool CallSequence::update() {
  const std::uint64_t wanted = by_order_ ? period() : 0;
  if (wanted == in_use_) return false;
  in_use_ = wanted;
  return true;
}

}  // namespace slimpi::comm
