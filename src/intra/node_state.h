// SPDX-License-Identifier: BSD-3-Clause
// The state that a communicator has for its node: the shared-memory segment of the node's ranks.
#pragma once
#include <memory>
#include <optional>

#include "comm/call.h"
#include "comm/communicator.h"
#include "intra/node_barrier.h"

namespace slimpi::intra {

// Opens and owns the segment. Owned by the communicator (comm::Attachment).
class NodeState : public comm::Attachment {
 public:
  static NodeState& of(comm::Communicator& communicator) {
    return communicator.attachment<NodeState>();
  }

  // Opens the shared-memory segment of the node-local ranks, once, unless SLIMPI_INTRA excludes it
  // or no node has two ranks. Collective.
  Status open_shared(comm::Communicator& communicator);
  // Returns the barrier, which owns the segment, or null if no segment is open.
  NodeBarrier* shared() const { return shared_.get(); }

  // Prepares a communicator whose ranks all share one node: opens the segment, and reserves the
  // memory that the call needs. Called while ready() is empty; afterwards ready() says whether all
  // ranks succeeded. Collective.
  Status prepare(const comm::Call& call);
  std::optional<bool> ready() const { return ready_; }

 private:
  void layout_changed() override;

  std::unique_ptr<NodeBarrier> shared_;
  bool shared_tried_ = false;
  std::optional<bool> ready_;  // what the ranks agreed on in prepare(); the same on all of them
};

// Returns the communicator's barrier, which owns the segment, or null if no segment is open.
inline NodeBarrier* shared_of(comm::Communicator& communicator) {
  return NodeState::of(communicator).shared();
}

}  // namespace slimpi::intra
