// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace slimpi::comm {

// How long messages are, alike on all ranks of a communicator. Fine: arithmetic and wire overlap
// early, and a segment stays in a core's cache. Coarse: some rank's device pays microseconds for
// every kernel and copy, whatever its length.
enum class SegmentClass { small, large };

}  // namespace slimpi::comm
