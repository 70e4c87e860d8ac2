// SPDX-License-Identifier: BSD-3-Clause
// The work inside a node of one call, piece by piece while the exchange between nodes runs. Every
// rank of the node owns a shard. It adds a piece of its shard when the exchange needs it, and says
// in its note how much of the shard is finished; the others fetch that meanwhile. All read each
// other's buffers in place (cma), so a piece passes no message buffer and no barrier.
//
//   first barrier   in intra_reduce_scatter: every rank's buffers are in its note
//   sum, fetch      in any order; a rank waits for no rank of its node
//   second barrier  every shard is finished
//   last barrier    no rank reads another's buffers any more
//
// In place (in == out): a rank writes a fetched piece over its input. The owner of the piece has
// read that input before: the piece would not be finished otherwise.
#pragma once
#include <cstdint>

#include "base/exceptions.h"
#include "comm/call.h"
#include "comm/communicator.h"
#include "intra/node_barrier.h"

namespace slimpi::intra {

class NodePieces {
 public:
  explicit NodePieces(comm::Call& call);

  // Whether host buffers of so many bytes can be summed in pieces, as far as size and memory
  // decide. The same on all ranks of the communicator.
  static bool possible(comm::Communicator& communicator, std::uint64_t bytes);
  static Status reserve(const comm::Call& call);

  // What intra_reduce_scatter does where all ranks of the node want pieces: nothing is added yet.
  void begin() { begun_ = true; }
  bool begun() const { return begun_; }

  // `out` = the sum of the node-local ranks' in, in rank order. `part`: of this rank's shard,
  // counted from the start of the vector, as in fetch().
  Status sum(const comm::Range& part);

  // So many segments of this rank's shard are finished in `out`; and of a node-local rank's.
  void set_finished(std::uint64_t segments);
  std::uint64_t finished(int local) const;

  // Copies a finished part of a node-local rank's shard to this rank's `out`.
  Status fetch(int local, const comm::Range& part);

  // Passes the second and the last barrier, with rest() between them. `status`: how the exchange
  // ended.
  template <typename Rest>
  Status end(Status status, const Rest& rest) {
    if (status == Status::ok)
      status = call_.communicator.exchange().settle(caught([&] {
                                                      SLIMPI_TRY(barrier());
                                                      SLIMPI_TRY(rest());
                                                      return barrier();
                                                    }),
                                                    {});
    return status;
  }

 private:
  Status barrier() { return shared_.barrier(call_.communicator.exchange()); }

  comm::Call& call_;
  NodeBarrier& shared_;
  bool begun_ = false;
};

}  // namespace slimpi::intra
