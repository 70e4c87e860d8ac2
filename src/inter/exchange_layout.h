// SPDX-License-Identifier: BSD-3-Clause
// What the exchange of a shard between nodes depends on, and what a schedule computes from that.
#pragma once
#include <cstdint>
#include <tuple>

#include "comm/node_layout.h"
#include "comm/point_to_point.h"
#include "kernels/format.h"

namespace slimpi::inter {

// All that it depends on, apart from the values.
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

// Positions, lengths and peers, computed once for all exchanges of one size. Nothing in a layout
// changes while exchanges use it, and it refers to nothing outside itself.
class ExchangeLayout {
 public:
  ExchangeLayout() = default;
  virtual ~ExchangeLayout() = default;
  ExchangeLayout(const ExchangeLayout&) = delete;
  ExchangeLayout& operator=(const ExchangeLayout&) = delete;
};

}  // namespace slimpi::inter
