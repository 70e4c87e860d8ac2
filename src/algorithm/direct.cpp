// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/direct.h"

#include <string>

#include "base/log.h"

namespace slimpi::algorithm {

Direct::Readiness Direct::readiness(const device::Device& device, const void* like) const {
  if (intra_ == Intra::shm || refused_ || device.sharing == nullptr) return can_not;
  if (device_ == nullptr) return closed;
  return device_ == &device && unit_ == device::unit_of(device, like) ? ready : can_not;
}

Status Direct::open(SharedMemory& shared, Exchange& exchange, const device::Device& device,
                    const void* like, Statistics& statistics) {
  device_ = &device;
  unit_ = device::unit_of(device, like);
  bool opened = false;
  std::string reason;
  if (intra_ != Intra::ipc) {
    SLIMPI_TRY(links.open(shared, exchange, device, like, statistics, &opened, &reason));
    if (opened) {
      way_ = Way::links;
      log_once(LogLevel::info, std::string("the ranks of a node exchange device buffers by ") +
                                   device.links->library);
      return Status::ok;
    }
    if (intra_ == Intra::nccl)
      return fail(Status::unsupported, "SLIMPI_INTRA=nccl can not be used here: " + reason +
                                           "; accepted: auto, ipc, shm, mpi");
    log_once(LogLevel::info, "the GPUs of a node are not linked: " + reason);
  }
  SLIMPI_TRY(boxes.open(shared, exchange, device, like, statistics, &opened, &reason));
  if (opened) {
    way_ = Way::boxes;
    log_once(LogLevel::info, "the ranks of a node work in each other's device memory");
    return Status::ok;
  }
  refused_ = true;
  device_ = nullptr;
  if (!reason.empty())
    log_once(LogLevel::info, "device buffers pass through host memory inside the node: " + reason);
  return Status::ok;
}

}  // namespace slimpi::algorithm
