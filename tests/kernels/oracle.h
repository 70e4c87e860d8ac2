// SPDX-License-Identifier: BSD-3-Clause
// The quantizer once more, from its description alone: one element at a time, in long double, bits
// read one by one. Shares no code with the kernels.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace slimpi::test {

struct OracleBucket {
  std::size_t first, count;
  const unsigned char* packed;
  std::size_t packed_bytes;
  float min, max;
  long double step;

  unsigned level(int bits, std::size_t i) const {
    unsigned q = 0;
    for (int b = 0; b < bits; ++b) {
      // Value i of a group of 8 starts at bit i * bits of the group's `bits` bytes.
      const std::size_t at =
          i / 8 * 8 * (std::size_t)bits + i % 8 * (std::size_t)bits + (std::size_t)b;
      q |= (unsigned)(packed[at / 8] >> at % 8 & 1) << b;
    }
    return q;
  }

  // Returns how far `decoded` is from the value of level q. If 0 lies half-way between two levels,
  // either level may stand for it.
  long double distance(int bits, bool stochastic, unsigned q, float decoded) const {
    if (stochastic || min == max || min > 0 || max < 0) return fabsl(decoded - (min + step * q));
    const long double exact = -(long double)min / step, top = (1 << bits) - 1;
    const long double below = std::fmin(floorl(exact + 0.5L - 1e-9L), top);
    const long double above = std::fmin(floorl(exact + 0.5L + 1e-9L), top);
    return std::fmin(fabsl(decoded - (q - below) * step), fabsl(decoded - (q - above) * step));
  }
};

inline std::vector<OracleBucket> oracle_buckets(const void* encoded, int bits, std::size_t bucket,
                                                std::size_t count) {
  std::vector<OracleBucket> found;
  const auto* at = (const unsigned char*)encoded;
  if (bucket == 0) bucket = count;
  for (std::size_t first = 0; first < count; first += bucket) {
    OracleBucket b{};
    b.first = first;
    b.count = std::min(bucket, count - first);
    memcpy(&b.min, at, 4);
    memcpy(&b.max, at + 4, 4);
    b.step = ((long double)b.max - (long double)b.min) / ((1 << bits) - 1);
    b.packed = at + 8;
    b.packed_bytes = ((b.count * (std::size_t)bits + 7) / 8 + 3) / 4 * 4;
    at += 8 + b.packed_bytes;
    found.push_back(b);
  }
  return found;
}

// The bound of |x' - x| that the header of the quantizer guarantees.
inline long double error_bound(const OracleBucket& bucket, bool stochastic) {
  const long double greatest = std::fmax(fabsl(bucket.min), fabsl(bucket.max));
  return (stochastic ? bucket.step : bucket.step / 2) + (stochastic ? 9 : 6) * 0x1p-24L * greatest +
         0x1p-150L;
}

}  // namespace slimpi::test
