// SPDX-License-Identifier: BSD-3-Clause
// The messages of one pass of the mpi transport: their buffers and requests. It owns the requests;
// the buffers are the call's scratch, in the call's kind of memory and, where that is staged, in
// host memory as well.
//
// Segment `number` uses the buffers and requests of number modulo kDepth. There is one of each for
// every node-local rank and direction, so a message never waits for that of another rank.
#pragma once
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "comm/call.h"
#include "intra/copies.h"
#include "intra/transports.h"

namespace slimpi::intra {

class NodeMessages {
 public:
  static constexpr int kDepth = 2;  // segments in flight
  static constexpr std::uint64_t kSegment = kMessageFloats;

  // The buffers were reserved before: reserve_node_messages().
  explicit NodeMessages(comm::Call& call);

  // Sends `part` of `from` to a node-local rank. Waits first until the message of this buffer that
  // was sent before has left.
  Status send(comm::Tag tag, std::uint64_t number, int other, const float* from,
              const comm::Range& part);

  // Posts the receive of a segment's message into its buffer. Takes a message of any length up to
  // kSegment floats, so that one of a wrong length is an error of slimpi, which names the rank.
  Status post(comm::Tag tag, std::uint64_t number, int other);
  // Waits for that message. *values: its `count` floats, where kernels read them; valid until the
  // buffer is posted again. A copy to the device may still be queued.
  Status take(std::uint64_t number, int other, std::uint64_t count, const float** values);

  // The same for a message whose values belong at `to`, where it is received directly if MPI can.
  Status post_into(comm::Tag tag, std::uint64_t number, int other, float* to, std::uint64_t count);
  Status take_into(std::uint64_t number, int other, float* to, std::uint64_t count);

  // Waits for the copies on the stream, and for the kernels that were queued between them.
  Status finish_copies();

  std::span<mpi::Request> requests() { return requests_; }

 private:
  enum class Direction { in, out };

  // Byte offset of a message buffer.
  std::size_t place(Direction direction, std::uint64_t number, int other) const;
  mpi::Request& request(Direction direction, std::uint64_t number, int other);
  int rank_of(int local) const { return node_local_ranks_[std::size_t(local)]; }

  const comm::Call& call_;
  comm::Exchange& exchange_;
  const std::vector<int>& node_local_ranks_;
  const std::size_t size_;
  const bool staged_;
  std::byte *memory_, *staging_;  // staging_: where MPI sends from and receives into
  std::pmr::vector<mpi::Request> requests_;
  NodeCopies copies_{call_};
};

}  // namespace slimpi::intra
