// SPDX-License-Identifier: BSD-3-Clause
#include "intra/device_transport.h"

#include <string>

#include "base/log.h"

namespace slimpi::intra {

// Asks no other rank: the answer goes into the word that each rank publishes before the call's
// first barrier, and the ranks use the path only if all published the same.
DevicePath::Readiness DevicePath::readiness(const device::Location& location) const {
  if (intra_ == Intra::shm || refused_ || !location.device->staged) return unavailable;
  if (!location_) return not_open;
  // The NCCL communicator that is open belongs to one GPU, and to its memory since the last reset.
  return *location_ == location ? ready : unavailable;
}

Status DevicePath::open(NodeBarrier& shared, comm::Exchange& exchange,
                        const device::Location& location, Statistics& statistics) {
  bool opened = false;
  std::string reason;
  SLIMPI_TRY(nccl.open(shared, exchange, location, statistics, &opened, &reason));
  if (opened) {
    location_ = location;
    path_ = Path::nccl;
    log_once(LogLevel::info, std::string("the ranks of a node exchange device buffers by ") +
                                 location.device->nccl->library);
    return Status::ok;
  }
  if (intra_ == Intra::nccl)
    return fail(Status::unsupported,
                "SLIMPI_INTRA=nccl cannot be used here: " + reason + "; accepted: auto, shm, mpi");
  // For good: every later call would pay for the same failure.
  refused_ = true;
  log_once(LogLevel::info, "NCCL is not used inside the node: " + reason +
                               "; device buffers pass through host memory");
  return Status::ok;
}

}  // namespace slimpi::intra
