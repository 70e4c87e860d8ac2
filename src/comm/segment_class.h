// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace slimpi::comm {

// How long inter-node messages are; the same on all ranks of a communicator. small: arithmetic and
// transfer overlap early, and a segment stays in a core's cache. large: for when some rank's device
// costs microseconds for every kernel and copy, whatever its length. longest: the same on a network
// that is so fast that the CPU's time for messages counts. The lengths are in
// inter/segment_length.cpp.
enum class SegmentClass { small, large, longest };

}  // namespace slimpi::comm
