// SPDX-License-Identifier: BSD-3-Clause
// The exchange between nodes: scatter-reduce, then all-gather, two roundings however many take
// part.
//
// M ranks of a rail divide a slice into M chunks and own one each. Every rank encodes the chunks
// that it does not own and sends each to its owner; the owner adds what it decodes to its own exact
// share, in rank order, encodes the sum, sends that to all and decodes it itself, so all end with
// the same bytes. Segments of the chunks flow through these steps one behind the other.
//
// Cost: 2 (M-1)/M * n * bits/8 bytes sent and received by every rank, 2 (M-1) messages a segment.
// Error: half a step of each sender's bucket plus half a step of the total's (nearest).
// Loses to a logarithmic schedule where n is so small that 2 (M-1) messages cost more than the
// bytes.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

// How a slice of `count` elements is cut for `members` ranks, and the memory that takes.
struct Segments {
  std::uint64_t align;     // chunks start at multiples of this: the bucket
  std::uint64_t elements;  // of a segment; whole buckets
  int slots;               // segments under way at once
  std::size_t message;     // bytes reserved for one message, header included
  std::size_t total;       // bytes for all of them
};
Segments segments_for(const kernels::Format& format, std::uint64_t count, int members, bool staged);

// Sums `slice` of the call's vector over the rail. `in` and `out` point at the slice; in == out is
// allowed. `residual` (of the slice's length, or null) is what compression lost before. Needs the
// memory that segments_for says, reserved in the communicator.
Status run_rounds(Call& call, const Rails& rails, Range slice, const float* in, float* out,
                  float* residual);

}  // namespace slimpi::algorithm
