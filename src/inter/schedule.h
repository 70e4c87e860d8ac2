// SPDX-License-Identifier: BSD-3-Clause
// The schedules of the exchange between nodes: one table, from which every call takes the cheapest
// for its size and the number of nodes. The result has the same bytes whichever it is.
#pragma once
#include <span>

#include "comm/call.h"
#include "inter/pipeline_plan.h"

namespace slimpi::inter {

// Scratch memory: of the communicator's `messages`, and `staging` where the device is staged, in
// bytes; of its `partial`, in floats, with many members.
struct Need {
  std::size_t bytes = 0;
  std::uint64_t partial = 0;
};

struct Schedule {
  const char* name;

  // Seconds that a sum of `count` floats over `members` takes, by the constants of schedule.cpp.
  double (*cost)(const kernels::Format& format, std::uint64_t count, int group_size,
                 comm::SegmentClass segment_class);

  Need (*need)(const kernels::Format& format, std::uint64_t count, int group_size,
               comm::SegmentClass segment_class, bool staged);

  // Sums `slice` of the call's vector over the inter-node group. `in` and `out` point at the slice;
  // in == out is allowed. `residual` (of the slice's length, or null) is what compression lost
  // before.
  Status (*run)(comm::Call& call, const comm::InterNodeGroup& group, comm::Range shard,
                const float* in, float* out, float* residual);
};

std::span<const Schedule> schedules();

// The cheapest that keeps to a bounded memory; alike on all ranks.
const Schedule& schedule_for(const kernels::Format& format, std::uint64_t count, int group_size,
                             comm::SegmentClass segment_class);

// Runs that one for the call's format; as Schedule::run.
Status run_exchange(comm::Call& call, const comm::InterNodeGroup& group, comm::Range shard,
                    const float* in, float* out, float* residual);

// What that one needs.
Need exchange_need(const kernels::Format& format, std::uint64_t count, int group_size,
                   comm::SegmentClass segment_class, bool staged);

}  // namespace slimpi::inter
