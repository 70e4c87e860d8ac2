// SPDX-License-Identifier: BSD-3-Clause
// The NCCL communicator of a node, with one GPU per rank, through which the ranks exchange device
// memory. They create it together, at the first call in which all of them have buffers on a CUDA
// device, and all learn whether that succeeded.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "comm/exchange.h"
#include "comm/memory.h"
#include "intra/node_barrier.h"
#include "options/option_types.h"

namespace slimpi::intra {

class NcclGroup {
 public:
  // `intra` is what SLIMPI_INTRA allows.
  explicit NcclGroup(Intra intra) : intra_(intra) {}
  ~NcclGroup() { abort(); }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  // kDepth blocks are in flight at a time. piece() returns how many floats a rank sends to one
  // owner in one block, on a node of `size` ranks. With up to 8 ranks a piece has 4 MiB, because a
  // group of transfers costs some 30 us. With more ranks it is shorter, so that an owner receives
  // at most 32 MiB in one block.
  static constexpr int kDepth = 2;
  static constexpr std::uint64_t piece(int size) {
    return (std::uint64_t(1) << 20) * std::uint64_t(std::min(size, 8)) / std::uint64_t(size) / 64 *
           64;
  }

  // Returns whether this rank can use NCCL for a call with buffers at `location`: at once
  // (`ready`), after open() (`not_open`), or not at all. The rank publishes the result
  // (transports.h).
  enum Readiness : std::uint64_t { unavailable = 0, not_open = 1, ready = 2 };
  Readiness readiness(const device::Location& location) const;

  // Opens the communicator, once all node-local ranks have published `not_open`. Sets *opened to
  // whether that succeeded, the same on all these ranks. After a failure no rank tries again; the
  // failure is an error if SLIMPI_INTRA=nccl demands NCCL.
  Status open(NodeBarrier& shared, comm::Exchange& exchange, const device::Location& location,
              Statistics& statistics, bool* opened);
  bool is_open() const { return location_.has_value(); }

  // Closes the communicator, with nothing in flight. All node-local ranks close it together.
  void close() { end(true); }
  // Makes NCCL abort the communicator, without waiting for other ranks.
  void abort() { end(false); }

  // Return scratch memory: arrived() for the values that other ranks send to this one in a block
  // (`index` is the number of the block modulo kDepth), and partial() for intermediate sums.
  float* arrived(int index) const { return scratch_.floats() + std::uint64_t(index) * block_; }
  float* partial() const { return scratch_.floats() + kDepth * block_; }

  // Queues the transfers on the stream, and returns once an event can be recorded after them.
  Status send(comm::Exchange& exchange, std::span<const device::NcclTransport::Transfer> transfers,
              device::Stream* stream);

  // Waits until the stream has completed all its work, or until an operation fails on any rank.
  Status wait(comm::Exchange& exchange, device::Stream* stream);

 private:
  struct Note;
  Status try_to_open(NodeBarrier& shared, comm::Exchange& exchange,
                     const device::Location& location, Statistics& statistics, bool* opened,
                     std::string* reason);
  static Note& note_of(NodeBarrier& shared, int local);
  Status find_gpu(const device::Location& location, Note& mine);
  Status prepare(const device::Location& location, int size, Statistics& statistics);
  Status create_communicator(NodeBarrier& shared, comm::Exchange& exchange,
                             const device::Location& location);
  void end(bool in_order);

  const Intra intra_;
  bool refused_ = false;                      // opening has failed once, so NCCL is not used
  std::optional<device::Location> location_;  // the GPU of the open communicator
  const device::Device* device_ = nullptr;
  device::NcclCommunicator* communicator_ = nullptr;
  std::uint64_t block_ = 0;  // floats of all ranks' pieces of a block
  comm::Memory scratch_;
};

}  // namespace slimpi::intra
