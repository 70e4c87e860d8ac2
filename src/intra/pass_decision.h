// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of a node decide about one pass from the words that they published before its
// first barrier (published_word.h). All ranks see the same words, so all decide the same, but for
// the path where every rank uses the one that it has open.
#pragma once
#include "intra/device_path.h"
#include "intra/node_barrier.h"
#include "intra/published_word.h"

namespace slimpi::intra {

struct PassDecision {
  DevicePath::Path path;
  bool open;    // a device path is to be opened first: all ranks could, and none is open
  bool pieces;  // the sum is made in pieces: all ranks want that, and none has buffers on a device
  bool again;   // other message buffers are used than before the barrier, or for the first time
};

// `own`: the path of this rank before the barrier.
inline PassDecision decide(const NodeBarrier::Published& published, DevicePath::Path own) {
  if (!published.alike(published::kReadiness)) return {DevicePath::Path::host, false, false, true};
  const bool open = (published.all & published::kReadiness) == DevicePath::not_open;
  const bool pieces = (published.all & published::kPieces) != 0 && own == DevicePath::Path::host;
  // A rank that wanted pieces has not copied anything yet.
  return {own, open, pieces, open || !published.alike(published::kPieces)};
}

}  // namespace slimpi::intra
