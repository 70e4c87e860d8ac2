// SPDX-License-Identifier: BSD-3-Clause
// Checks after an inter-node exchange that its relative L2 error is under SLIMPI_MAX_ERROR. Every
// rank compares the values that it encoded with the decoded values, tile by tile: as a sender the
// sums of its node, as an owner the sums of its chunk. One sum over all ranks collects what
// error_bound.h needs. The rounding of float additions is bounded by the norms of the addends.
//
// Cost: each rank encodes and decodes its shard once more, and sends at most 160 KiB.
#pragma once
#include <vector>

#include "algorithm/algorithm.h"
#include "algorithm/error_bound.h"
#include "comm/kernel_result.h"

namespace slimpi::algorithm {

// What kernels::Kernels::compare finds.
using SquaredNorms = comm::KernelResult<double, 2>;

// The buffers of the check, all in host memory. Null on ranks that carry no shard.
struct Checked {
  const float* in = nullptr;      // the node's sum of this rank's shard
  const float* out = nullptr;     // the result of the chunk that this rank owns
  const float* totals = nullptr;  // the sums of this chunk before they were encoded
  float* decoded = nullptr;       // scratch: check_piece() floats
  std::byte* encoded = nullptr;   // scratch: encoded_bytes() of these floats
};

// Elements that the check encodes in one step, for a chunk of `chunk` elements: whole buckets.
std::uint64_t check_piece(const kernels::Format& format, std::uint64_t chunk);

// Sets *bound to a bound of the L2 error that float additions make in this rank's share of the sum
// inside the node. Not collective. Must be called before that sum, which may overwrite the input.
Status node_rounding(comm::Call& call, double* bound);

// Sets *excess to the bound of the error divided by the allowed error: the check passes if it is at
// most 1. Infinite if there is no bound. Collective; *excess may differ between ranks in its last
// bits.
Status measure_excess(comm::Call& call, const kernels::Format& format,
                      const comm::InterNodeGroup& group, comm::Range shard, const Checked& checked,
                      double node_rounding, double* excess);

}  // namespace slimpi::algorithm
