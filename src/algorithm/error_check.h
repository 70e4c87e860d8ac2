// SPDX-License-Identifier: BSD-3-Clause
// After an exchange between nodes: whether its relative L2 error is under SLIMPI_MAX_ERROR for
// certain. Every rank compares what it encoded with what that decodes to, tile by tile: as a
// sender its node's sums, as an owner the sums of its chunk. One sum over all ranks puts together
// what error_bound.h needs. Rounding of the sums in float is bounded by the norms of the addends.
//
// Cost: the rank encodes and decodes its slice once more; a message of at most 160 KB.
#pragma once
#include <vector>

#include "algorithm/algorithm.h"
#include "algorithm/error_bound.h"

namespace slimpi::algorithm {

// What the check reads, all of it in host memory. Null on ranks that own no slice.
struct Checked {
  const float* in = nullptr;      // the node's sum of this rank's slice
  const float* out = nullptr;     // the result of the slice's own chunk
  const float* totals = nullptr;  // the sums of the own chunk before they were encoded
  float* decoded = nullptr;       // scratch: check_piece() floats
  std::byte* encoded = nullptr;   // scratch: encoded_bytes() of them
};

// Elements that the check encodes at a time, of a chunk of `chunk`: whole buckets.
std::uint64_t check_piece(const kernels::Format& format, std::uint64_t chunk);

// Bound of the L2 error that float additions made in this rank's share of its node's sum.
// Collective over nothing; called before the node's sum, which may write over the input.
Status node_rounding(comm::Call& call, double* bound);

// How far the result may be off, relative to what is allowed: the check holds where this is at most
// 1. Infinite where nothing is known. Collective; ranks may differ in the last bits.
Status measure_excess(comm::Call& call, const kernels::Format& format,
                      const comm::InterNodeGroup& group, comm::Range shard, const Checked& checked,
                      double node_rounding, double* excess);

}  // namespace slimpi::algorithm
