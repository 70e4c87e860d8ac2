// SPDX-License-Identifier: BSD-3-Clause
// Links between the GPUs of a node, one to a rank, over which its ranks send each other what lies
// in device memory. The node-local ranks join together, and whether they could is known to all of
// them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "comm/exchange.h"
#include "comm/memory.h"
#include "intra/shared_segment.h"

namespace slimpi::intra {

class NcclGroup {
 public:
  NcclGroup() = default;
  ~NcclGroup() { close(false); }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  // Floats that come from all node-local ranks at a time, and for how many times there is scratch.
  static constexpr std::uint64_t kBlock = 2 << 20;
  static constexpr int kDepth = 2;

  // Collective over the node. *opened is alike on all its ranks; where it is false, *reason is,
  // too.
  Status open(SharedSegment& shared, comm::Exchange& exchange, const device::Device& device,
              const void* like, Statistics& statistics, bool* opened, std::string* reason);

  // In order: every node-local rank does so, and nothing is under way.
  void close(bool in_order);

  // What comes from the node-local ranks, and what is being added up; kBlock floats each.
  float* arrived(int slot) const { return floats() + std::uint64_t(slot) * kBlock; }
  float* partial() const { return floats() + kDepth * kBlock; }

  // Queues the pieces behind what is on the stream, and returns when the stream can be marked
  // behind them.
  Status send(comm::Exchange& exchange, const std::vector<device::NcclTransport::Transfer>& pieces,
              device::Stream* stream);

  // Waits until the stream has done everything, or something goes wrong on any rank.
  Status wait(comm::Exchange& exchange, device::Stream* stream);

 private:
  struct Note;
  static Note& note_of(SharedSegment& shared, int process);
  Status prepare(const void* like, Statistics& statistics, Note& mine);
  Status create_communicator(SharedSegment& shared, comm::Exchange& exchange, const void* like);
  bool joined(std::string* reason);
  float* floats() const { return reinterpret_cast<float*>(scratch_.data()); }

  const device::Device* device_ = nullptr;
  device::NcclCommunicator* communicator_ = nullptr;
  comm::Memory scratch_;
};

}  // namespace slimpi::intra
