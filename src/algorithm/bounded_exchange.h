// SPDX-License-Identifier: BSD-3-Clause
// The inter-node exchange under SLIMPI_MAX_ERROR. It begins with the codec that passed last for
// this size (codec_choice.h). After the exchange, the error is checked (error_check.h). If the
// check fails, the exchange is repeated with a finer codec. The last repetition uses float32, which
// needs no check. All ranks take the same decisions.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

// `in` is the node's sum of this rank's `shard`; it may lie in call.out. `node_rounding` is the
// result of node_rounding() in error_check.h. Collective over the communicator; ranks without an
// inter-node group call it, too.
Status run_bounded(comm::Call& call, const comm::InterNodeGroup& group, comm::Range shard,
                   const float* in, double node_rounding);

// Reserves the memory that run_bounded() needs, in addition to the memory of the exchange itself,
// for any of the codecs.
Status reserve_bounded(const comm::Call& call);

}  // namespace slimpi::algorithm
