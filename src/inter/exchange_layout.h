// SPDX-License-Identifier: BSD-3-Clause
// What a schedule computes once for all exchanges of one size: positions, lengths, peers. Nothing
// in a layout changes while exchanges use it, and it refers to nothing outside itself.
#pragma once
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "comm/node_layout.h"
#include "comm/segment_class.h"
#include "kernels/format.h"

namespace slimpi::inter {

// All that a layout depends on. `me` and `staged` are this rank's; the rest is the same on all
// members of the inter-node group.
struct ExchangeSize {
  kernels::Format format;
  std::uint64_t count = 0;  // floats of the shard
  int group_size = 1, me = 0;
  comm::SegmentClass segment_class = comm::SegmentClass::small;
  bool staged = false;

  auto words() const {
    return std::tuple(count, format.codec, format.bits, format.stochastic, format.bucket,
                      group_size, me, segment_class, staged);
  }
  bool operator==(const ExchangeSize& other) const { return words() == other.words(); }
  bool operator<(const ExchangeSize& other) const { return words() < other.words(); }
};

class ExchangeLayout {
 public:
  ExchangeLayout() = default;
  virtual ~ExchangeLayout() = default;
  ExchangeLayout(const ExchangeLayout&) = delete;
  ExchangeLayout& operator=(const ExchangeLayout&) = delete;

  virtual std::size_t bytes() const = 0;  // of memory that it takes, about

  // Groups of each member's chunk that the schedule finishes one after the other, so that it can do
  // a NodeWork between them; 0: it cannot. The same on all members.
  virtual std::int64_t groups() const { return 0; }
  // Group `number` of a member's chunk, from the shard's first element on; empty if that chunk is
  // shorter.
  virtual comm::Range group(int member, std::int64_t number) const {
    (void)member, (void)number;
    return {};
  }
};

}  // namespace slimpi::inter
