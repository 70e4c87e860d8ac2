// SPDX-License-Identifier: BSD-3-Clause
// How the node-local ranks of a communicator get a shared-memory segment and a channel on it.
#pragma once
#include <memory>
#include <vector>

#include "base/option_types.h"
#include "comm/exchange.h"
#include "intra/node_segment.h"

namespace slimpi::intra {

// Floats of one rank's shard in a block, at least: one cache line.
inline constexpr std::uint64_t kLeastPiece = 16;

// A communicator's segment and its channel there. Empty where `segment` is null.
struct SegmentPlace {
  std::shared_ptr<NodeSegment> segment;
  int channel = -1;
  std::vector<int> process_of;  // the process number on the segment, by local rank
};

// Finds a channel on a segment that the node's processes already have, or makes a new segment, with
// smaller blocks where memory is short. Collective over the communicator. *ready is the same on all
// its ranks. It is false, and *place is empty, where the ranks of some node cannot share memory.
Status open_segment(comm::Exchange& exchange, const comm::NodeLayout& layout, Intra intra,
                    Statistics& statistics, SegmentPlace* place, bool* ready);

// Releases the channel and the segment, if there is one. Waits for no process where no device
// memory was shared.
void leave_segment(SegmentPlace* place);

}  // namespace slimpi::intra
