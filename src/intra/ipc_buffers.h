// SPDX-License-Identifier: BSD-3-Clause
// Device memory of each rank of a node that all its ranks work in: what shared memory is to host
// buffers. The node-local ranks open it together, and whether they could is known to all of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/memory.h"
#include "intra/shared_segment.h"

namespace slimpi::intra {

class IpcBuffers {
 public:
  IpcBuffers() = default;
  ~IpcBuffers() { close(); }
  IpcBuffers(const IpcBuffers&) = delete;
  IpcBuffers& operator=(const IpcBuffers&) = delete;

  // Floats of a rank's message buffer in one block, and how many blocks it holds.
  static constexpr std::uint64_t kBlock = 2 << 20;
  static constexpr int kDepth = 3;

  // Collective over the node. *opened is alike on all its ranks; where it is false, *reason is what
  // went wrong here, if anything did.
  Status open(SharedSegment& shared, comm::Exchange& exchange, const device::Device& device,
              const void* like, Statistics& statistics, bool* opened, std::string* reason);

  // Lets go of the node-local ranks' memory. This rank's own goes with the object, once no
  // node-local rank has it any more.
  void close();

  // Of a process of the segment.
  float* buffer(int process) const {
    return reinterpret_cast<float*>(buffers_[std::size_t(process)]);
  }
  float* scratch() const { return buffer(me_) + kDepth * kBlock; }  // this rank's, of kBlock floats

  std::uint64_t blocks = 0;  // as NodeSegment::blocks

 private:
  Status offer(const device::Device& device, const void* like, Statistics& statistics,
               device::Ipc::Handle* handle);

  const device::Device* device_ = nullptr;
  comm::Memory memory_;
  std::vector<std::byte*> buffers_;  // the node-local ranks' and, at me_, this rank's own
  int me_ = 0;
};

}  // namespace slimpi::intra
