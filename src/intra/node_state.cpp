// SPDX-License-Identifier: BSD-3-Clause
#include "intra/node_state.h"

#include "intra/intra_node.h"
#include "observe/log.h"

namespace slimpi::intra {

void NodeState::layout_changed() {
  // The segment, and ready_, on which the ranks agreed, belong to the old layout.
  shared_.reset();
  shared_tried_ = false;
  ready_.reset();
}

Status NodeState::open_shared(comm::Communicator& communicator) {
  const Intra intra = communicator.config().intra;
  if (shared_tried_ || intra == Intra::mpi) return Status::ok;
  // All ranks know all nodes, so either all ranks take part in the opening or none does.
  bool node_ranks = false;
  for (const auto& node : communicator.layout().ranks_of) node_ranks |= node.size() > 1;
  shared_tried_ = true;
  if (!node_ranks) return Status::ok;
  // From here on every rank takes the same steps, even one that is alone on its node.
  std::unique_ptr<NodeSegment> segment;
  SLIMPI_TRY(open_segment(communicator.exchange(), communicator.layout(), intra,
                          communicator.statistics(), &segment));
  if (segment != nullptr) {
    shared_ = std::make_unique<NodeBarrier>(std::move(segment),
                                            communicator.layout().node_ranks().front());
    return Status::ok;
  }
  if (intra == Intra::nccl)
    return fail(Status::unsupported,
                "SLIMPI_INTRA=nccl cannot be used here: the ranks of a node cannot share memory; "
                "accepted: auto, shm, mpi");
  if (communicator.rank() == 0)
    log_once(intra == Intra::automatic ? LogLevel::debug : LogLevel::warn,
             "the ranks of a node cannot share memory; they exchange by messages");
  return Status::ok;
}

Status NodeState::prepare(const comm::Call& call) {
  comm::Communicator& communicator = call.communicator;
  SLIMPI_TRY(open_shared(communicator));
  // The ranks have agreed in open_shared() whether there is a segment, so all return here or none
  // does.
  if (shared_ == nullptr) {
    ready_ = false;
    return Status::ok;
  }
  device::Stream* stream = nullptr;
  bool ready = reserve_intra_allreduce(call) == Status::ok &&
               communicator.stream_for(call.location, &stream) == Status::ok;
  if (!ready) log_failure_once(LogLevel::warn, "sums inside the node go to MPI");
  SLIMPI_TRY(communicator.exchange().all_true(&ready));
  ready_ = ready;
  return Status::ok;
}

}  // namespace slimpi::intra
