// SPDX-License-Identifier: BSD-3-Clause
// Device memory of each rank of a node that all its ranks work in: what shared memory is to host
// buffers. The neighbours open it together, and whether they could is known to all of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "algorithm/memory.h"
#include "algorithm/shared_memory.h"

namespace slimpi::algorithm {

class DirectBoxes {
 public:
  DirectBoxes() = default;
  ~DirectBoxes() { close(); }
  DirectBoxes(const DirectBoxes&) = delete;
  DirectBoxes& operator=(const DirectBoxes&) = delete;

  // Floats of a rank's box in one block, and how many blocks it holds.
  static constexpr std::uint64_t kBlock = 2 << 20;
  static constexpr int kSlots = 3;

  // Collective over the node. *opened is alike on all its ranks; where it is false, *reason is what
  // went wrong here, if anything did.
  Status open(SharedMemory& shared, Exchange& exchange, const device::Device& device,
              const void* like, Statistics& statistics, bool* opened, std::string* reason);

  // Lets go of the neighbours' memory. This rank's own goes with the object, once no neighbour has
  // it any more.
  void close();

  // Of a process of the segment.
  float* box(int process) const { return reinterpret_cast<float*>(boxes_[std::size_t(process)]); }
  float* scratch() const { return box(me_) + kSlots * kBlock; }  // this rank's, of kBlock floats

  std::uint64_t blocks = 0;  // as NodeSegment::blocks

 private:
  Status offer(const device::Device& device, const void* like, Statistics& statistics,
               device::Sharing::Handle* handle);

  const device::Device* device_ = nullptr;
  Memory memory_;
  std::vector<std::byte*> boxes_;  // the neighbours' and, at me_, this rank's own
  int me_ = 0;
};

}  // namespace slimpi::algorithm
