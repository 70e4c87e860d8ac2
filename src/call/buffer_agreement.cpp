// SPDX-License-Identifier: BSD-3-Clause
#include "call/admission.h"

#include <string>

#include "device/device.h"
#include "device/foreign.h"
#include "observe/activity.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {

const char* owner_of(const Allreduce& request) {
  const char* const owner = device::foreign_owner(request.buffer());
  if (owner != nullptr || request.in == mpi::abi.in_place) return owner;
  return device::foreign_owner(request.in);
}

}  // namespace

Status agree_on_memory(comm::Communicator& communicator, const Allreduce& request, bool* left) {
  *left = false;
  const Buffers wanted = communicator.config().buffers;
  const bool asks = communicator.foreign_possible() || wanted != Buffers::any;
  if (!asks && !device::foreign_possible()) [[likely]]
    return Status::ok;
  const char* const owner = owner_of(request);
  if (!asks) {
    if (owner == nullptr) return Status::ok;
    // The others take the call, and cannot be asked any more.
    communicator.give_up();
    return fail(Status::device,
                std::string("a buffer lies in the memory of ") + owner +
                    ", whose library or driver was loaded after the first float sum on this "
                    "communicator: load it before, or set SLIMPI_ALGORITHM=off");
  }
  const bool on_device = device::locate(request.buffer()).device != &device::host();
  std::uint64_t words[] = {owner != nullptr ? 1u : 0u, on_device ? 1u : 0u};
  SLIMPI_TRY(communicator.exchange().all_max(words));
  const auto [foreign, device] = words;
  *left = foreign != 0 || (wanted != Buffers::any && (device != 0) != (wanted == Buffers::device));
  if (owner != nullptr)
    log_once(LogLevel::info, std::string("sums of buffers in the memory of ") + owner +
                                 " go to MPI on all ranks: slimpi does not use it");
  return Status::ok;
}

}  // namespace slimpi::call
