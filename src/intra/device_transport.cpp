// SPDX-License-Identifier: BSD-3-Clause
#include "intra/device_transport.h"

#include <string>

#include "base/log.h"

namespace slimpi::intra {

// Asks no other rank: the answer goes into the word that each rank publishes before the call's
// first barrier, and the ranks use the path only if all published the same.
DevicePath::Readiness DevicePath::readiness(const device::Location& location) const {
  if (intra_ == Intra::shm || refused_ || location.device->ipc == nullptr) return unavailable;
  if (!location_) return not_open;
  // The buffers and the NCCL communicator that are open belong to one GPU, and to its memory since
  // the last reset.
  return *location_ == location ? ready : unavailable;
}

// Every step ends in a barrier that tells whether all node-local ranks succeeded, so `opened` is
// the same on all of them, and so is the next step. Only `reason` may differ: it is this rank's, or
// empty.
Status DevicePath::open(NodeBarrier& shared, comm::Exchange& exchange,
                        const device::Location& location, Statistics& statistics) {
  location_ = location;
  bool opened = false;
  std::string reason;
  // In the order of preference; SLIMPI_INTRA=nccl or ipc leaves one of the two.
  if (intra_ != Intra::ipc) {
    SLIMPI_TRY(nccl.open(shared, exchange, location, statistics, &opened, &reason));
    if (opened) {
      path_ = Path::nccl;
      log_once(LogLevel::info, std::string("the ranks of a node exchange device buffers by ") +
                                   location.device->nccl->library);
      return Status::ok;
    }
    if (intra_ == Intra::nccl)
      return fail(Status::unsupported, "SLIMPI_INTRA=nccl cannot be used here: " + reason +
                                           "; accepted: auto, ipc, shm, mpi");
    log_once(LogLevel::info, "NCCL is not used inside the node: " + reason);
  }
  SLIMPI_TRY(buffers.open(shared, exchange, location, statistics, &opened, &reason));
  if (opened) {
    path_ = Path::ipc;
    log_once(LogLevel::info, "the ranks of a node work in each other's device memory");
    return Status::ok;
  }
  // For good: every later call would pay for the same failure.
  refused_ = true;
  location_.reset();
  if (!reason.empty())
    log_once(LogLevel::info, "device buffers pass through host memory inside the node: " + reason);
  return Status::ok;
}

}  // namespace slimpi::intra
