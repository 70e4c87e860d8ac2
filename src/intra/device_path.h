// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a node exchange what lies in device memory, where it need not pass through the
// host's: over links between their GPUs, or in message buffers that each of them opens to the
// others. The node-local ranks find it out together at the first call in which all of them have
// buffers on such a device. It belongs to the lease of their segment: all communicators of these
// processes use it, and its ranks are the segment's.
#pragma once
#include <cstdint>

#include "base/option_types.h"
#include "intra/ipc_buffers.h"
#include "intra/nccl_group.h"

namespace slimpi::intra {

class DevicePath {
 public:
  // `intra`: what SLIMPI_INTRA allows.
  explicit DevicePath(Intra intra) : intra_(intra) {}

  // How the ranks of a node exchange in a call: in the host's shared memory, in each other's device
  // memory, over links, or, where another call has all of these, by messages.
  enum class Path { host, ipc, nccl, mpi };

  // What a rank publishes of a call whose buffers are on `device`. `ready` goes with way().
  enum Readiness : std::uint64_t { unavailable = 0, not_open = 1, ready = 2 };
  Readiness readiness(const device::Device& device, const void* like) const;

  // All node-local ranks said `closed`: opens the best way there is. What way() is then is alike on
  // all of them; where it is `host` nobody tries again.
  Status open(SharedSegment& shared, comm::Exchange& exchange, const device::Device& device,
              const void* like, Statistics& statistics);
  Path way() const { return way_; }

  // Lets go of the node-local ranks' memory, then, when no node-local rank has this rank's any
  // more, of the links. In order: all node-local ranks do so, and nothing is under way.
  void close_message_buffers() { buffers.close(); }
  void close_links(bool in_order) { nccl.close(in_order); }

  IpcBuffers buffers;
  NcclGroup nccl;

 private:
  const Intra intra_;
  bool refused_ = false;
  Path way_ = Path::host;
  const device::Device* device_ = nullptr;
  int ordinal_ = 0;
};

}  // namespace slimpi::intra
