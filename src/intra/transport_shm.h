// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_INTRA=shm: the message buffers lie in the segment of the node, in host memory.
#pragma once
#include "comm/call.h"
#include "intra/node_barrier.h"
#include "intra/shared_buffers.h"

namespace slimpi::intra {

class HostBuffers final : public SharedBuffers {
 public:
  HostBuffers(NodeBarrier& shared, comm::Call& call) : shared_(shared), call_(call) {}

  float* buffer(int local) const override { return shared_.segment().data(local); }
  BufferRing& ring() override { return shared_.segment().ring; }
  float* scratch() const override { return call_.scratch.node_partial().data(); }
  bool readable() const override { return !call_.device.staged; }
  NodeCopies::Where stores() const override { return stores_; }

 private:
  NodeBarrier& shared_;
  comm::Call& call_;
  const NodeCopies::Where stores_ =
      shared_.cross_cache() ? NodeCopies::Where::memory : NodeCopies::Where::caches;
};

}  // namespace slimpi::intra
