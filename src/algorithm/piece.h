// SPDX-License-Identifier: BSD-3-Clause
// What a piece of a call's slice is to the wire and to stochastic rounding.
#pragma once
#include "algorithm/algorithm.h"
#include "codec/wire.h"

namespace slimpi::algorithm {

// The header of a message about `part` of `slice` that `sender`, a rank of the communicator, sends.
codec::Message message_about(const Call& call, const kernels::Format& format, const Range& slice,
                             const Range& part, int sender);

// The numbers that this rank draws when it encodes the part.
kernels::Draw draw_for(const Call& call, const Range& slice, const Range& part);

}  // namespace slimpi::algorithm
