// SPDX-License-Identifier: BSD-3-Clause
#include "intra/device_path.h"

#include <string>

#include "base/log.h"

namespace slimpi::intra {

DevicePath::Readiness DevicePath::readiness(const device::Location& location) const {
  const bool host_only = intra_ == Intra::shm || intra_ == Intra::cma;
  if (host_only || refused_ || location.device->ipc == nullptr) return unavailable;
  if (!location_) return not_open;
  return *location_ == location ? ready : unavailable;
}

Status DevicePath::open(SharedSegment& shared, comm::Exchange& exchange,
                        const device::Location& location, Statistics& statistics) {
  location_ = location;
  bool opened = false;
  std::string reason;
  if (intra_ != Intra::ipc) {
    SLIMPI_TRY(nccl.open(shared, exchange, location, statistics, &opened, &reason));
    if (opened) {
      way_ = Path::nccl;
      log_once(LogLevel::info, std::string("the ranks of a node exchange device buffers by ") +
                                   location.device->nccl->library);
      return Status::ok;
    }
    if (intra_ == Intra::nccl)
      return fail(Status::unsupported, "SLIMPI_INTRA=nccl cannot be used here: " + reason +
                                           "; accepted: auto, ipc, cma, shm, mpi");
    log_once(LogLevel::info, "the GPUs of a node are not linked: " + reason);
  }
  SLIMPI_TRY(buffers.open(shared, exchange, location, statistics, &opened, &reason));
  if (opened) {
    way_ = Path::ipc;
    log_once(LogLevel::info, "the ranks of a node work in each other's device memory");
    return Status::ok;
  }
  refused_ = true;
  location_.reset();
  if (!reason.empty())
    log_once(LogLevel::info, "device buffers pass through host memory inside the node: " + reason);
  return Status::ok;
}

}  // namespace slimpi::intra
