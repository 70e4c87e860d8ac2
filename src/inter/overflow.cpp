// SPDX-License-Identifier: BSD-3-Clause
#include "inter/overflow.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace slimpi::inter {

namespace {
// Whether the bits are those of an infinity or a NaN.
bool is_special(std::uint16_t bits, std::uint16_t infinity) {
  return (bits & 0x7fff) >= infinity;
}
}  // namespace

bool Overflow::is_infinite(const std::byte* payload, std::uint64_t i) const {
  std::uint16_t bits;
  std::memcpy(&bits, payload + 2 * i, sizeof bits);
  return (bits & 0x7fff) == infinity_;
}

// There is almost always none, so one fast pass over values that are still in the cache is enough.
bool Overflow::any(const std::byte* payload, std::uint64_t count) const {
  constexpr std::uint64_t kLanes = 32;
  std::uint16_t maxima[kLanes] = {};
  std::uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    std::uint16_t float16[kLanes];
    std::memcpy(float16, payload + 2 * i, sizeof float16);
    for (std::uint64_t at = 0; at < kLanes; ++at) {
      // Compares as signed integers: every vector unit can do that.
      const auto magnitude = std::int16_t(float16[at] & 0x7fff);
      const auto so_far = std::int16_t(maxima[at]);
      maxima[at] = std::uint16_t(magnitude > so_far ? magnitude : so_far);
    }
  }
  bool found = false;
  // NaN counts here, too, and only makes the slower search run: a NaN is no overflow.
  for (const std::uint16_t bits : maxima) found = found || is_special(bits, infinity_);
  for (; i < count; ++i) found = found || is_infinite(payload, i);
  return found;
}

void Overflow::encoded(const std::byte* payload, const float* from, std::uint64_t count) {
  if (infinity_ == 0 || !any(payload, count)) return;
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < count; ++i)
    // An infinity of the program is no overflow. Without `from` nothing is known about the values.
    found += is_infinite(payload, i) && (from == nullptr || std::isfinite(from[i]));
  statistics_.count(&Counts::overflowed, found);
}

void Overflow::keep(const float* own, std::uint64_t count, const kernels::Kernels& host) {
  own_.clear();
  if (infinity_ == 0) return;
  int found = 0;
  host.find_beyond(own, kernels::kMaxFloat, count, &found, nullptr);
  // Kept only where one is not finite, which is rare: the sum may overwrite them.
  if (found != 0) own_.assign(own, own + count);
}

void Overflow::summed(const std::byte* payload, std::span<const std::byte* const> addends,
                      std::uint64_t count) {
  if (infinity_ == 0 || !any(payload, count)) return;
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!is_infinite(payload, i) || (!own_.empty() && !std::isfinite(own_[i]))) continue;
    found += std::none_of(addends.begin(), addends.end(),
                          [&](const std::byte* addend) { return is_infinite(addend, i); });
  }
  statistics_.count(&Counts::overflowed, found);
}

}  // namespace slimpi::inter
