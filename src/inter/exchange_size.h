// SPDX-License-Identifier: BSD-3-Clause
// All that the exchange of a shard between nodes depends on, apart from the values.
#pragma once
#include <cstdint>
#include <tuple>

#include "comm/segment_class.h"
#include "kernels/format.h"

namespace slimpi::inter {

// `staged` and `me` are this rank's; the rest is the same on all members of the inter-node group.
struct ExchangeSize {
  kernels::Format format;
  std::uint64_t count = 0;  // floats of the shard
  int group_size = 1;
  comm::SegmentClass segment_class = comm::SegmentClass::small;
  bool staged = false;
  int me = 0;

  auto words() const {
    return std::tuple(count, format.codec, format.bits, format.stochastic, format.bucket,
                      group_size, segment_class, staged, me);
  }
  bool operator==(const ExchangeSize& other) const { return words() == other.words(); }
  bool operator<(const ExchangeSize& other) const { return words() < other.words(); }
};

}  // namespace slimpi::inter
