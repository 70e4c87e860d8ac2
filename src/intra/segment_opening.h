// SPDX-License-Identifier: BSD-3-Clause
// How the node-local ranks of a communicator come to a shared-memory segment and a channel on it.
#pragma once
#include <memory>
#include <vector>

#include "base/option_types.h"
#include "comm/exchange.h"
#include "intra/node_segment.h"

namespace slimpi::intra {

// A communicator's place on a segment. Empty where `segment` is null.
struct SegmentPlace {
  std::shared_ptr<NodeSegment> segment;
  int channel = -1;
  std::vector<int> process_of;  // number on the segment, by local rank
};

// Finds a place on a segment that the node's processes have already, or makes one, with smaller
// blocks where memory is short. Collective over the communicator; *ready is alike on all its ranks,
// and false, without a place, where the ranks of some node cannot share memory.
Status open_segment(comm::Exchange& exchange, const comm::NodeLayout& layout, Intra intra,
                    Statistics& statistics, SegmentPlace* place, bool* ready);

// Gives up the place, if it is one. Waits for nobody where no device memory was shared.
void leave_segment(SegmentPlace* place);

}  // namespace slimpi::intra
