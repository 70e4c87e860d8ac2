// SPDX-License-Identifier: BSD-3-Clause
// The exchange of reduce_scatter_allgather.h, with the same bytes as its result, in log2(M) steps
// for M nodes: what a rank has for the owners of chunks, and then the owners' sums,
// travel by way of other ranks (bruck_steps.h), unchanged.
//
// Cost: 2 log2(M) messages of every rank, to log2(M) others; (log2(M) / 2 + 1) * n * bits/8 bytes.
// Loses to direct messages where the bytes cost more than the messages saved.
#pragma once
#include "inter/schedule.h"

namespace slimpi::inter {

Status run_bruck(comm::Call& call, const comm::InterNodeGroup& group, comm::Range shard,
                 const float* in, float* out, float* residual);

Need bruck_need(const kernels::Format& format, std::uint64_t count, int group_size,
                comm::SegmentClass segment_class, bool staged);

}  // namespace slimpi::inter
