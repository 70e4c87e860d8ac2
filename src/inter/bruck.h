// SPDX-License-Identifier: BSD-3-Clause
// The exchange of reduce_scatter_allgather.h, with the same bytes as its result, in log2(M) steps
// per phase for M nodes. Other ranks store and forward the blocks, unchanged: first what a rank has
// for the owners of chunks, then the owners' sums (bruck_steps.h).
//
// Cost: every rank sends 2 log2(M) messages, to log2(M) peers; (log2(M) / 2 + 1) * n * bits/8
// bytes. Slower than the pairwise exchange if the additional bytes cost more than the messages that
// it saves.
#pragma once
#include "inter/schedule.h"

namespace slimpi::inter {

// As Schedule::layout in schedule.h.
std::unique_ptr<const ExchangeLayout> bruck_layout(const ExchangeSize& size);

// As Schedule::run. Needs bruck_need of scratch memory.
Status run_bruck(const Context& context, const ExchangeLayout& layout,
                 const comm::InterNodeGroup& group, comm::Range shard, const float* in, float* out,
                 float* residual);

// As Schedule::need. Its memory is the same whether the device is staged or not.
Need bruck_need(const ExchangeSize& size);

}  // namespace slimpi::inter
