// SPDX-License-Identifier: BSD-3-Clause
// The node state of a communicator: the shared-memory segment of the ranks of this node.
#pragma once
#include <memory>
#include <optional>

#include "comm/call.h"
#include "comm/communicator.h"
#include "intra/node_barrier.h"

namespace slimpi::intra {

// Opens the segment and owns it. The communicator owns this object (comm::Attachment).
class NodeState : public comm::Attachment {
 public:
  static NodeState& of(comm::Communicator& communicator) {
    return communicator.attachment<NodeState>();
  }

  // Opens the shared-memory segment of the node-local ranks, once. Does nothing if SLIMPI_INTRA
  // excludes it or if no node has two ranks. Collective.
  Status open_shared(comm::Communicator& communicator);
  // Returns the barrier, which owns the segment; null if no segment is open.
  NodeBarrier* shared() const { return shared_.get(); }

  // Prepares a communicator whose ranks are all on one node: opens the segment, and reserves the
  // memory that the call needs. Called while ready() is empty; afterwards ready() says whether that
  // worked on all ranks. Collective.
  Status prepare(const comm::Call& call);
  std::optional<bool> ready() const { return ready_; }

 private:
  void layout_changed() override;

  std::unique_ptr<NodeBarrier> shared_;
  bool shared_tried_ = false;
  std::optional<bool> ready_;  // the agreed result of prepare; the same on all ranks
};

// Returns the communicator's barrier, which owns the segment; null if no segment is open.
inline NodeBarrier* shared_of(comm::Communicator& communicator) {
  return NodeState::of(communicator).shared();
}

}  // namespace slimpi::intra
