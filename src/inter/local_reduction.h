// SPDX-License-Identifier: BSD-3-Clause
// What the owner of a chunk does between the reduce-scatter and the all-gather.
#pragma once
#include <functional>

#include "inter/context.h"

namespace slimpi::inter {

// A segment of a chunk that this rank owns. This rank is member `me` of `group_size`. All pointers
// are to memory of the context's device and to `count` elements.
struct Owned {
  int group_size, me;
  const float* in;  // this rank's own values, exact
  float* residual;  // what compression lost in earlier calls; updated; or null
  std::uint64_t count;
  std::byte* payload;  // gets the encoded sum
  float* out;          // gets what that decodes to; may be `in`
  float* total;        // gets the sum before it is encoded, or null
};

// Adds the members' values in rank order, this rank's own exactly and the others' decoded from
// encoded(member), and encodes the sum. If there are more members than one kernel can add, the
// context's `partial` holds owned.count floats between kernels. Only queues work on the compute
// stream.
void reduce_at_owner(const Context& context, const kernels::RandomStream& random,
                     const Owned& owned,
                     const std::function<const std::byte*(int member)>& encoded);

}  // namespace slimpi::inter
