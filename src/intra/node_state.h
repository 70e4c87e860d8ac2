// SPDX-License-Identifier: BSD-3-Clause
// What is kept for the ranks of this node in one communicator: their shared-memory segment, and
// what is known about MPI's sums inside the node.
#pragma once
#include <memory>
#include <optional>

#include "comm/communicator.h"
#include "intra/shared_segment.h"
#include "intra/summation_order.h"

namespace slimpi::intra {

class NodeState : public comm::Attachment {
 public:
  static NodeState& of(comm::Communicator& communicator) {
    return communicator.attachment<NodeState>();
  }

  // Opens the shared-memory segment of the node-local ranks, once. Does nothing if SLIMPI_INTRA
  // excludes it or if no node has two ranks. Collective.
  Status open_shared(comm::Communicator& communicator);
  // Null where there is no segment.
  SharedSegment* shared() const { return shared_.get(); }

  // For a communicator on one node: opens the segment, and reserves the call's scratch
  // memory and a stream. *ready: all ranks could; it is the same on all. Collective at the first
  // call, without communication later.
  Status prepare(const comm::Call& call, bool* ready);

  NodeOrder order;  // what is known about the summation order of MPI

 private:
  void layout_changed() override;

  std::unique_ptr<SharedSegment> shared_;
  bool shared_tried_ = false;
  std::optional<bool> ready_;  // the agreed result of prepare; the same on all ranks
};

// The node's segment; null where there is none.
inline SharedSegment* shared_of(comm::Communicator& communicator) {
  return NodeState::of(communicator).shared();
}

}  // namespace slimpi::intra
