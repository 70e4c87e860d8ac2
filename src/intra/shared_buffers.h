// SPDX-License-Identifier: BSD-3-Clause
// The message buffers of a node's ranks, which all of them can use: what differs between shm and
// ipc in a block_pass.h.
#pragma once
#include "intra/buffer_ring.h"
#include "intra/copies.h"

namespace slimpi::intra {

class SharedBuffers {
 public:
  // Of a rank, which alone writes there; a ring of them.
  virtual float* buffer(int local) const = 0;
  virtual BufferRing& ring() = 0;
  // Scratch of additions; of this rank alone.
  virtual float* scratch() const = 0;
  // Whether kernels can read the others' buffers where they are.
  virtual bool readable() const = 0;
  // By which stores this rank writes its buffer.
  virtual NodeCopies::Where stores() const = 0;

 protected:
  ~SharedBuffers() = default;
};

}  // namespace slimpi::intra
