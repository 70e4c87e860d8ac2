// SPDX-License-Identifier: BSD-3-Clause
// The pairwise schedule of the inter-node exchange: reduce-scatter, then all-gather, two phases for
// any number of nodes.
//
// The M ranks of an inter-node group divide a shard into M chunks and own one each. Every rank
// encodes the chunks that it does not own and sends each to its owner. The owner adds what it
// decodes to its own exact values, in rank order, encodes the sum, sends that to all and decodes it
// itself. So all ranks end with the same bytes.
//
// The segments of the chunks form a pipeline. In each step a rank has one message to send and one
// to receive (pairwise_steps.h). While these are in flight, it encodes, adds or decodes for the
// steps before and after. The bytes in flight are limited (Segments::in_flight), because flows that
// compete for a link slow each other down by more than waiting costs. Small messages are in flight
// together.
//
// Cost: every rank sends and receives 2 (M-1)/M * n * bits/8 bytes, in 2 (M-1) messages per
// segment. Error: half a quantization step of each sender's bucket plus half a step of the total's
// (nearest rounding). Slower than bruck.h if n is so small that 2 (M-1) messages cost more than the
// bytes.
#pragma once
#include <memory>

#include "inter/context.h"
#include "inter/exchange_layout.h"
#include "inter/exchange_size.h"

namespace slimpi::inter {

// As Schedule::layout: a PairwiseLayout.
std::unique_ptr<const ExchangeLayout> pairwise_layout(const ExchangeSize& size);

// As Schedule::run. Needs the memory that segments_for returns, reserved in the call's scratch.
Status run_reduce_scatter_allgather(const Context& context, const ExchangeLayout& layout,
                                    const comm::InterNodeGroup& group, comm::Range shard,
                                    const float* in, float* out, float* residual);

}  // namespace slimpi::inter
