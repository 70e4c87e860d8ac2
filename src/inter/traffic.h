// SPDX-License-Identifier: BSD-3-Clause
// What the schedules between nodes send: counted from the division of a shard into chunks and
// segments, without any time.
#pragma once
#include "inter/exchange_layout.h"

namespace slimpi::cost {

// What the busiest rank sends in a sum of one shard between nodes. The size's `me` and `staged` do
// not count.
struct Traffic {
  double waits = 0;     // steps that wait for the one before
  double messages = 0;  // that it sends
  double bytes = 0;     // of these, headers included
  double owners = 1;    // ranks that own a chunk
  double chunk = 0;     // bytes of floats of the longest chunk
};
Traffic pairwise_traffic(const inter::ExchangeSize& size);
Traffic bruck_traffic(const inter::ExchangeSize& size);

// Bytes that all ranks of the group together put between nodes in the pairwise schedule.
double pairwise_bytes(const inter::ExchangeSize& size);

}  // namespace slimpi::cost
