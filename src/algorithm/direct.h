// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a node exchange what lies in device memory, where it need not pass through the
// host's: over links between their GPUs, or in boxes that each of them opens to the others. The
// neighbours find it out together at the first call in which all of them have buffers on such a
// device. It belongs to the lease of their segment: all communicators of these processes use it,
// and its ranks are the segment's.
#pragma once
#include <cstdint>

#include "algorithm/direct_boxes.h"
#include "algorithm/direct_links.h"
#include "base/option_types.h"

namespace slimpi::algorithm {

class Direct {
 public:
  // `intra`: what SLIMPI_INTRA allows.
  explicit Direct(Intra intra) : intra_(intra) {}

  // How the ranks of a node exchange in a call: in the host's shared memory, in each other's device
  // memory, over links, or, where another call has all of these, by messages.
  enum class Way { host, boxes, links, messages };

  // What a rank publishes of a call whose buffers are on `device`. `ready` goes with way().
  enum Readiness : std::uint64_t { can_not = 0, closed = 1, ready = 2 };
  Readiness readiness(const device::Device& device, const void* like) const;

  // All neighbours said `closed`: opens the best way there is. What way() is then is alike on all
  // of them; where it is `host` nobody tries again.
  Status open(SharedMemory& shared, Exchange& exchange, const device::Device& device,
              const void* like, Statistics& statistics);
  Way way() const { return way_; }

  // Lets go of the neighbours' memory, then, when no neighbour has this rank's any more, of the
  // links. In order: all neighbours do so, and nothing is under way.
  void close_boxes() { boxes.close(); }
  void close_links(bool in_order) { links.close(in_order); }

  DirectBoxes boxes;
  DirectLinks links;

 private:
  const Intra intra_;
  bool refused_ = false;
  Way way_ = Way::host;
  const device::Device* device_ = nullptr;
  int unit_ = 0;
};

}  // namespace slimpi::algorithm
