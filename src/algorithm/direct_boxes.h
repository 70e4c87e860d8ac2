// SPDX-License-Identifier: BSD-3-Clause
// Device memory of each rank of a node that all its ranks work in: what shared memory is to host
// buffers. The neighbours open it together at the first call in which all of them have buffers on
// such a device; whether they could is known to all of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithm/memory.h"
#include "algorithm/shared_memory.h"

namespace slimpi::algorithm {

class DirectBoxes {
 public:
  // `wanted`: SLIMPI_INTRA allows it.
  explicit DirectBoxes(bool wanted) : wanted_(wanted) {}
  ~DirectBoxes() { close(); }
  DirectBoxes(const DirectBoxes&) = delete;
  DirectBoxes& operator=(const DirectBoxes&) = delete;

  // Floats of a rank's box in one block, and how many blocks it holds.
  static constexpr std::uint64_t kBlock = 2 << 20;
  static constexpr int kSlots = 3;

  // What a rank says of a call whose buffers are on `device`.
  enum Readiness : std::uint64_t { can_not = 0, closed = 1, ready = 2 };
  Readiness readiness(const device::Device& device, const void* like) const;

  // All neighbours said `closed`: opens the boxes. *opened is alike on all of them; where it is
  // false nobody tries again.
  Status open(SharedMemory& shared, Exchange& exchange, const Layout& layout,
              const device::Device& device, const void* like, Statistics& statistics, bool* opened);

  // Lets go of the neighbours' memory. This rank's own goes with the object, once no neighbour has
  // it any more.
  void close();

  float* box(int local) const { return reinterpret_cast<float*>(boxes_[std::size_t(local)]); }
  float* scratch() const { return box(me_) + kSlots * kBlock; }  // this rank's, of kBlock floats

  std::uint64_t blocks = 0;   // as SharedMemory::blocks
  bool in_this_call = false;  // the call's sum went through these boxes, so its result does, too

 private:
  Status offer(const device::Device& device, const void* like, Statistics& statistics,
               device::Sharing::Handle* handle);

  const bool wanted_;
  bool refused_ = false;
  const device::Device* device_ = nullptr;
  int unit_ = 0;
  Memory memory_;
  std::vector<std::byte*> boxes_;  // the neighbours' and, at me_, this rank's own
  int me_ = 0;
};

}  // namespace slimpi::algorithm
