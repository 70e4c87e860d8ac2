// SPDX-License-Identifier: BSD-3-Clause
// Counts the 16-bit values that became infinite on this rank in a reduce-scatter and all-gather,
// for the report.
#pragma once
#include <memory_resource>
#include <span>
#include <vector>

#include "base/statistics.h"
#include "kernels/kernels.h"

namespace slimpi::inter {

// All payloads are in host memory. Does nothing if the codec has no infinity.
class Overflow {
 public:
  // `memory`: of the call; it keeps the largest copy of keep().
  Overflow(kernels::Codec codec, Statistics& statistics, std::pmr::memory_resource* memory)
      : infinity_(kernels::row_of(codec).infinity), statistics_(statistics), own_(memory) {}

  bool counts() const { return infinity_ != 0; }

  // `payload` was encoded from the floats `from`. If those are not in host memory it is null, and
  // then values that were infinite before are counted too.
  void encoded(const std::byte* payload, const float* from, std::uint64_t count);

  // To be called before a sum overwrites this rank's own addend: keeps a copy if it is not all
  // finite.
  void keep(const float* own, std::uint64_t count, const kernels::Kernels& host);

  // `payload` was encoded from the sum of this rank's own addend and these addends.
  void summed(const std::byte* payload, std::span<const std::byte* const> addends,
              std::uint64_t count);

 private:
  bool is_infinite(const std::byte* payload, std::uint64_t i) const;
  bool any(const std::byte* payload, std::uint64_t count) const;

  const std::uint16_t infinity_;  // bits of +infinity; 0 if it has none
  Statistics& statistics_;
  std::pmr::vector<float> own_;  // the addend of the last keep(); empty if all of it is finite
};

}  // namespace slimpi::inter
