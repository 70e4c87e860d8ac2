// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_INTRA=ipc: device memory of each rank of a node that all its ranks map and use, as host
// buffers use shared memory. The node-local ranks open it together, and all of them know whether
// that worked.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/memory.h"
#include "intra/buffer_ring.h"
#include "intra/node_barrier.h"

namespace slimpi::intra {

class IpcBuffers {
 public:
  IpcBuffers() = default;
  ~IpcBuffers() { close(); }
  IpcBuffers(const IpcBuffers&) = delete;
  IpcBuffers& operator=(const IpcBuffers&) = delete;

  // Floats of the longest message buffer of a rank.
  static constexpr std::uint64_t kBlock = 2 << 20;

  // Collective over the node. *opened is the same on all its ranks. Where it is false, *reason is
  // what failed on this rank, or empty if nothing did.
  Status open(NodeBarrier& shared, comm::Exchange& exchange, const device::Location& location,
              Statistics& statistics, bool* opened, std::string* reason);

  // Unmaps the node-local ranks' memory. This rank's own memory is freed with the object, once no
  // node-local rank maps it any more.
  void close();

  // Of a rank, which alone writes there; the same ring on all ranks.
  float* buffer(int local) const { return reinterpret_cast<float*>(buffers_[std::size_t(local)]); }
  BufferRing ring{kBlock};
  float* scratch() const { return buffer(me_) + ring.floats(); }  // kBlock floats

 private:
  Status offer(const device::Location& location, Statistics& statistics,
               device::Ipc::Handle* handle);

  const device::Device* device_ = nullptr;
  comm::Memory memory_;
  std::vector<std::byte*> buffers_;  // by local rank; at me_ this rank's own
  int me_ = 0;
};

}  // namespace slimpi::intra
