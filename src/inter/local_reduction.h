// SPDX-License-Identifier: BSD-3-Clause
// What the owner of a chunk does between the reduce-scatter and all-gather.
#pragma once
#include <functional>

#include "comm/call.h"

namespace slimpi::inter {

// A piece of a chunk whose owner is this rank, `me` of `members`.
struct Owned {
  int group_size, me;
  const float* in;  // this rank's own share
  float* residual;  // what compression lost before, or null
  std::uint64_t count;
  std::byte* code;  // for the encoded sum
  float* out;       // for what it decodes to; may be `in`
  float* total;     // for the sum before it is encoded, or null
};

// Adds the members' shares in rank order, this rank's exact and the others' as `encoded` tells
// where they are, and encodes the sum. Where there are more members than a kernel adds, the
// communicator's `partial` holds piece.count floats meanwhile.
void reduce_at_owner(comm::Call& call, const kernels::RandomStream& draw, const Owned& piece,
                     const std::function<const std::byte*(int member)>& encoded);

}  // namespace slimpi::inter
