// SPDX-License-Identifier: BSD-3-Clause
// The work inside a node that a schedule does while its messages travel, so that the link is not
// idle before and after the exchange. A schedule whose layout has groups() calls it; ranges count
// from the first element of the shard.
#pragma once
#include "base/status.h"
#include "comm/node_layout.h"

namespace slimpi::inter {

class NodeWork {
 public:
  virtual ~NodeWork() = default;

  // Puts the node's sum of `part` where the exchange reads it. Called once for each element, before
  // the exchange reads it for the first time.
  virtual Status sum(const comm::Range& part) = 0;

  // Group `number` of every member's chunk holds the result. Called once for each group, in
  // ascending order.
  virtual Status finished(std::int64_t number) = 0;
};

}  // namespace slimpi::inter
