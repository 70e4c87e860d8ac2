// SPDX-License-Identifier: BSD-3-Clause
#include "comm/call_sequence.h"

#include <algorithm>

namespace slimpi::comm {

// One step of the prefix function of Knuth, Morris and Pratt: constant time on average. The calls
// before the first step of a program often have no period, so a sequence without one starts over,
// with twice the limit.
void CallSequence::add(std::uint64_t count) {
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

bool CallSequence::meet(const void* address, std::uint64_t count) {
  // The table forgets everything before searches in it become long. The next call of each buffer
  // then counts as fresh, once.
  if (seen_used_ >= kSeen * 3 / 4) {
    seen_.fill(0);
    seen_used_ = 0;
  }
  // Odd, and so is its product with an odd number. So it is never 0, which marks a free place.
  std::uint64_t key =
      (std::uint64_t(reinterpret_cast<std::uintptr_t>(address)) << 1 | 1) ^ (count << 48);
  key *= 0x9E3779B97F4A7C15u;
  for (std::size_t at = key >> 54;; at = (at + 1) % kSeen) {
    if (seen_[at] == key) return false;
    if (seen_[at] != 0) continue;
    seen_[at] = key;
    ++seen_used_;
    return true;
  }
}

bool CallSequence::has_unlike_counts(std::uint64_t period) const {
  return std::any_of(counts_.begin() + 1, counts_.begin() + std::ptrdiff_t(period),
                     [&](std::uint64_t count) { return count != counts_[0]; });
}

// Fresh buffers before the order of calls is used. Where all counts are equal the step may have
// more sums than the period, so more evidence is wanted.
std::uint64_t CallSequence::threshold(std::uint64_t period) const {
  return has_unlike_counts(period) ? std::max<std::uint64_t>(kLeast, 2 * period) : 64;
}

void CallSequence::agreed(bool fresh) {
  const std::uint64_t known = period();
  const std::uint64_t enough = known == 0 ? kMost : 2 * threshold(known);
  // The score has an upper limit, so a program that returns to fixed buffers is noticed after a
  // limited number of calls.
  if (fresh)
    score_ = std::min(score_ + 2, 2 * enough);
  else if (score_ > 0)
    --score_;
  if (score_ == 0) by_order_ = false;
  if (known != 0 && score_ >= enough) by_order_ = true;
}

bool CallSequence::update() {
  const std::uint64_t wanted = by_order_ ? period() : 0;
  if (wanted == in_use_) return false;
  in_use_ = wanted;
  return true;
}

}  // namespace slimpi::comm
