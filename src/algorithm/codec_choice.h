// SPDX-License-Identifier: BSD-3-Clause
// Chooses the codec of one call under SLIMPI_MAX_ERROR, so that the relative L2 error of the result
// stays under the error bound. The choice is made after the intra-node sums and before the
// inter-node exchange:
//   1. Every rank that carries a shard sends rank 0 the energy and the ranges of its tiles. A tile
//      is about one bucket (sample_tiles.h).
//   2. Rank 0 draws some tiles at random and sends their indices. Tiles with more energy or wider
//      ranges are drawn more often.
//   3. The ranks send rank 0 their floats of the drawn tiles. Rank 0 simulates the reduce-scatter
//      and the all-gather on them (error_estimate.h), with one codec after the other, the cheapest
//      first. It stops at the first codec whose estimate is under the error bound. The estimate is
//      the error that error_check.h will find, plus a margin for the random draw.
//   4. Rank 0 sends the index of the codec to all ranks.
// The estimate may be wrong sometimes: the check after the exchange decides (bounded_exchange.h).
//
// Cost: rank 0 receives 24 bytes per tile, and as floats at most 1/16 of a long vector or half of a
// short one.
#pragma once
#include "algorithm/algorithm.h"
#include "algorithm/codec_list.h"

namespace slimpi::algorithm {

struct ChosenCodec {
  int index = kExactCodec;
  double peak = 0;  // no sum has a larger absolute value
};

// Sets *chosen, for a call whose plan has a max_error. Collective over the communicator; *chosen is
// the same on all ranks. `in` is the node's sum of this rank's `shard`, in host memory; ranks
// without an inter-node group do not read it.
Status choose_codec(comm::Call& call, const comm::InterNodeGroup& group, comm::Range shard,
                    const float* in, ChosenCodec* chosen);

}  // namespace slimpi::algorithm
