// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_MAX_ERROR: which codec the reduce-scatter and all-gather use in one call, so that the
// relative L2 error of the total stays under a budget. Chosen between the sums inside the nodes and
// the exchange between them:
//   1. every owner of a slice tells rank 0 the energy and the ranges of its tiles, a tile being one
//      bucket or a few;
//   2. rank 0 draws some tiles, those with more energy or wider ranges more often, and tells which;
//   3. the owners send their floats of these tiles to rank 0, which runs the reduce-scatter and
//   all-gather on them
//      (budget_trial.h) with one codec after the other, from the cheapest on, until the error that
//      error_check.h is going to find, and what chance may have added, is under the budget;
//   4. rank 0 tells the codec.
// The estimate only has to be right most of the time: the check decides (bounded_exchange.h).
//
// Cost: 24 bytes a tile and at most 1/16 of a long buffer as floats to rank 0, half of a short one.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

// The codecs to choose from, cheapest first: 1 to 8 bits, fp16, float32.
constexpr int kCodecs = 10;
constexpr int kExactCoding = kCodecs - 1;
kernels::Format codec_at(const kernels::Format& quantizer, int index);

// The cheapest codec that is finer than `index` by the factor `excess`, as far as bits go; else
// the exact one.
int finer_codec(int index, double excess);

// Chooses for a call whose plan has a max_error. Collective over the communicator; alike on all
// ranks. `in` is the node's sum of `slice`, which is this rank's, in host memory; not looked at on
// ranks without a inter-node group.
Status choose_codec(comm::Call& call, const comm::InterNodeGroup& group, comm::Range shard,
                    const float* in, int* chosen);

}  // namespace slimpi::algorithm
