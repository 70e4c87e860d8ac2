// SPDX-License-Identifier: BSD-3-Clause
// How the node-local ranks of a communicator get a shared-memory segment.
#pragma once
#include <memory>

#include "base/option_types.h"
#include "comm/exchange.h"
#include "intra/node_segment.h"

namespace slimpi::intra {

// Floats of one rank's shard in a block, at least: one cache line.
inline constexpr std::uint64_t kLeastPiece = 16;

// Makes a segment, with shorter blocks where memory is short. Collective over the communicator.
// *segment is set on all its ranks or on none: it is null where the ranks of some node cannot share
// memory.
Status open_segment(comm::Exchange& exchange, const comm::NodeLayout& layout, Intra intra,
                    Statistics& statistics, std::unique_ptr<NodeSegment>* segment);

}  // namespace slimpi::intra
