// SPDX-License-Identifier: BSD-3-Clause
// The exchange of two_rounds.h, with the same bytes as its result, in steps whose number is the
// logarithm of the members: what a rank has for the owners of chunks, and then the owners' sums,
// travel by way of other ranks (relay.h), unchanged.
//
// Cost: 2 log2(M) messages of every rank, to log2(M) others; (log2(M) / 2 + 1) * n * bits/8 bytes.
// Loses to direct messages where the bytes cost more than the messages saved.
#pragma once
#include "algorithm/schedule.h"

namespace slimpi::algorithm {

Status run_relayed(Call& call, const Rails& rails, Range slice, const float* in, float* out,
                   float* residual);

Need relayed_need(const kernels::Format& format, std::uint64_t count, int members, Grain grain,
                  bool staged);

}  // namespace slimpi::algorithm
