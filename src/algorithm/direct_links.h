// SPDX-License-Identifier: BSD-3-Clause
// Links between the GPUs of a node, one to a rank, over which its ranks send each other what lies
// in device memory. The neighbours join together, and whether they could is known to all of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "algorithm/exchange.h"
#include "algorithm/memory.h"
#include "algorithm/shared_memory.h"

namespace slimpi::algorithm {

class DirectLinks {
 public:
  DirectLinks() = default;
  ~DirectLinks() { close(false); }
  DirectLinks(const DirectLinks&) = delete;
  DirectLinks& operator=(const DirectLinks&) = delete;

  // Floats that come from all neighbours at a time, and for how many times there is scratch.
  static constexpr std::uint64_t kBlock = 2 << 20;
  static constexpr int kSlots = 2;

  // Collective over the node. *opened is alike on all its ranks; where it is false, *reason is,
  // too.
  Status open(SharedMemory& shared, Exchange& exchange, const device::Device& device,
              const void* like, Statistics& statistics, bool* opened, std::string* reason);

  // In order: every neighbour does so, and nothing is under way.
  void close(bool in_order);

  // What comes from the neighbours, and what is being added up; kBlock floats each.
  float* arrived(int slot) const { return floats() + std::uint64_t(slot) * kBlock; }
  float* partial() const { return floats() + kSlots * kBlock; }

  // Queues the pieces behind what is on the stream, and returns when the stream can be marked
  // behind them.
  Status send(Exchange& exchange, const std::vector<device::Links::Piece>& pieces,
              device::Stream* stream);

  // Waits until the stream has done everything, or something goes wrong on any rank.
  Status wait(Exchange& exchange, device::Stream* stream);

 private:
  struct Note;
  static Note& note_of(SharedMemory& shared, int process);
  Status prepare(const void* like, Statistics& statistics, Note& mine);
  Status join(SharedMemory& shared, Exchange& exchange, const void* like);
  bool joined(std::string* reason);
  float* floats() const { return reinterpret_cast<float*>(scratch_.data()); }

  const device::Device* device_ = nullptr;
  device::Link* link_ = nullptr;
  Memory scratch_;
};

}  // namespace slimpi::algorithm
