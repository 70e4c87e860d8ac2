// SPDX-License-Identifier: BSD-3-Clause
// What a schedule computes once for all exchanges of one size: positions, lengths, peers. Nothing
// in a layout changes while exchanges use it, and it refers to nothing outside itself.
#pragma once
#include <cstddef>
#include <cstdint>

#include "comm/node_layout.h"

namespace slimpi::inter {

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
