// SPDX-License-Identifier: BSD-3-Clause
// What is kept for the ranks of this node in one communicator.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "comm/call.h"
#include "comm/communicator.h"
#include "intra/node_barrier.h"

namespace slimpi::intra {

// Whether MPI adds in the order in which slimpi adds inside a node. MPI chooses its algorithm by
// the count, by its variables and tuning files, and by earlier calls. So slimpi compares, for each
// count. MPI sums a probe vector whose sum differs in any other order, and the result must have the
// bytes of slimpi's order on every rank. Where it does not, calls of this count always go to MPI.
// Two addends have the same sum in either order, so two ranks compare nothing. In
// mpi_order_probe.cpp.
class NodeOrder {
 public:
  // Reserves memory, so that takes() allocates nothing: a rank without memory there would decide
  // otherwise than the others.
  void reserve(int ranks);

  // Counts a call of `count` floats among `ranks` ranks; the same on all ranks. False: the call
  // goes to MPI. With more than two ranks, so do the first calls of each count, because a
  // comparison costs more than an MPI call: kUncompared of them, or one if `at_once`.
  bool takes(std::uint64_t count, int ranks, bool at_once);
  static constexpr std::uint32_t kUncompared = 10;

  // Whether this rank has compared, since takes() last requested it, for a call with this kind of
  // buffers. Ranks may differ.
  bool verified(const comm::Call& call);

  // Compares. Collective. Afterwards verified() is true on all ranks, or takes() is false on all.
  Status compare(const comm::Call& call, bool* same);

 private:
  struct Count {
    std::uint64_t count = 0;
    std::uint32_t calls = 0;
    bool refused = false;
    unsigned verified = 0;  // bits of kind_of
  };
  static unsigned kind_of(const comm::Call& call);

  // The entry of a count, or where it belongs.
  std::vector<Count>::iterator place(std::uint64_t count);

  std::vector<Count> counts_;  // by count, ascending; kMostCounts are reserved
  bool warm_ = false;  // the kWarmUpCalls were made, after which MPI may change its algorithm
};

// The shared-memory segment of the ranks, and what is known about MPI's sums inside the node.
class NodeState : public comm::Attachment {
 public:
  static NodeState& of(comm::Communicator& communicator) {
    return communicator.attachment<NodeState>();
  }

  // Opens the shared-memory segment of the node-local ranks, once. Does nothing if SLIMPI_INTRA
  // excludes it or if no node has two ranks. Collective.
  Status open_shared(comm::Communicator& communicator);
  // Null where there is no segment.
  NodeBarrier* shared() const { return shared_.get(); }

  // For a communicator on one node: opens the segment, and reserves as reserve() does. Whether all
  // ranks could, which ready() tells from then on. Collective; to be called while ready() is empty.
  Status prepare(const comm::Call& call);
  std::optional<bool> ready() const { return ready_; }
  // The scratch memory and the stream of a call that adds inside the node. At every such call: the
  // set of scratch memory may be another one, with less in it. Not in a call that MPI does, where
  // the others would not learn that this rank has no memory.
  Status reserve(const comm::Call& call) const;

  NodeOrder order;  // what is known about the summation order of MPI

 private:
  void layout_changed() override;

  std::unique_ptr<NodeBarrier> shared_;
  bool shared_tried_ = false;
  std::optional<bool> ready_;  // the agreed result of prepare; the same on all ranks
};

// The node's segment; null where there is none.
inline NodeBarrier* shared_of(comm::Communicator& communicator) {
  return NodeState::of(communicator).shared();
}

}  // namespace slimpi::intra
