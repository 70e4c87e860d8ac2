// SPDX-License-Identifier: BSD-3-Clause
#include "intra/ordered_sum.h"

#include <vector>

namespace slimpi::intra {

// Sums of more than kMaxAddends addends need several kernels. Between them the sum so far is kept
// in `partial`, because `out` may be an addend of a later kernel.
void add_in_order(const device::DeviceStream& on, const kernels::Format& format,
                  std::span<const float* const> addends, std::uint64_t count, float* partial,
                  float* out) {
  const kernels::Kernels& table = *on.device.kernels();
  const float* group[kernels::kMaxAddends];
  int size = 0;
  for (std::size_t next = 0; next < addends.size();) {
    while (size < kernels::kMaxAddends && next < addends.size()) group[size++] = addends[next++];
    float* const to = next == addends.size() ? out : partial;
    if (format.codec == kernels::Codec::float64) {
      kernels::Addend doubles[kernels::kMaxAddends];
      for (int i = 0; i < size; ++i) doubles[i].exact = group[i];
      table.sum_encode(format, {}, doubles, size, nullptr, nullptr, count, nullptr, to, on.stream);
    } else {
      table.sum(group, size, count, to, on.stream);
    }
    // The sum so far becomes the first addend of the next group, which keeps the order of the
    // additions.
    group[0] = partial;
    size = 1;
  }
}

// With 2^k + r addends (r < 2^k), the first 2r are added in pairs, so that 2^k values remain. Then
// neighboring values are added, level by level, until one sum is left.
void add_in_pairs(const device::DeviceStream& on, std::span<const float* const> addends,
                  std::uint64_t count, float* partial, std::uint64_t stride, float* out,
                  std::pmr::memory_resource* memory) {
  const kernels::Kernels& table = *on.device.kernels();
  if (table.pair_sum != nullptr && addends.size() <= std::size_t(kernels::kMaxAddends)) {
    table.pair_sum(addends.data(), int(addends.size()), count, out, on.stream);
    return;
  }
  const auto add = [&](const float* a, const float* b, float* to) {
    const float* const both[] = {a, b};
    table.sum(both, 2, count, to, on.stream);
    return to;
  };
  // MPICH's recursive doubling needs a power of two as the number of values.
  std::size_t power = 1;
  while (2 * power <= addends.size()) power *= 2;
  std::size_t surplus = addends.size() - power, used = 0;
  std::pmr::vector<const float*> level(memory), next(memory);
  for (std::size_t i = 0; i < addends.size(); ++i) {
    if (surplus != 0) {
      level.push_back(add(addends[i], addends[i + 1], partial + used++ * stride));
      --surplus;
      ++i;
    } else {
      level.push_back(addends[i]);
    }
  }
  // A sum overwrites its left addend if that is itself a sum in `partial`.
  while (level.size() > 1) {
    next.clear();
    for (std::size_t i = 0; i < level.size(); i += 2) {
      const bool last = level.size() == 2;
      const bool in_scratch = level[i] >= partial && level[i] < partial + used * stride;
      // Only the last sum is written to `out`, because `out` may be an addend of any earlier sum.
      float* const to = last         ? out
                        : in_scratch ? const_cast<float*>(level[i])
                                     : partial + used++ * stride;
      next.push_back(add(level[i], level[i + 1], to));
    }
    level.swap(next);
  }
}

}  // namespace slimpi::intra
