// SPDX-License-Identifier: BSD-3-Clause
// Counts the 16-bit floats that became infinite in one rank's part of the reduce-scatter and
// all-gather, for the report.
#pragma once
#include <span>
#include <vector>

#include "base/statistics.h"
#include "kernels/kernels.h"

namespace slimpi::inter {

// All pieces lie in host memory. Does nothing where the codec has no 16-bit floats.
class Overflow {
 public:
  Overflow(kernels::Codec codec, Statistics& statistics)
      : infinity_(codec == kernels::Codec::fp16   ? 0x7c00
                  : codec == kernels::Codec::bf16 ? 0x7f80
                                                  : 0),
        statistics_(statistics) {}

  bool counts() const { return infinity_ != 0; }

  // `code` was made of the floats `from`; null where they cannot be looked at, and then an
  // infinity that was among them counts, too.
  void encoded(const std::byte* code, const float* from, std::uint64_t count);

  // Before a sum writes over this rank's own addend: remembers it if it is not all finite.
  void keep(const float* own, std::uint64_t count, const kernels::Kernels& host);

  // `code` was made of the sum of the own addend and these pieces.
  void summed(const std::byte* code, std::span<const std::byte* const> addends,
              std::uint64_t count);

 private:
  bool is_infinite(const std::byte* code, std::uint64_t i) const;
  bool any(const std::byte* code, std::uint64_t count) const;

  const std::uint16_t infinity_;  // its bits; 0 where there are no 16-bit floats
  Statistics& statistics_;
  std::vector<float> own_;  // empty where all of it is finite
};

}  // namespace slimpi::inter
