// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/feedback.h"

#include "algorithm/communicator.h"

namespace slimpi::algorithm {

// With a the limit and N the ranks: a node of k ranks encodes at most k a + a, decodes to no more,
// and all nodes with the owner's residual come to (2 N + 1) a. The rest is for rounding.
float safe_limit(const kernels::Format& format, int ranks) {
  const float greatest =
      format.coding == kernels::Coding::fp16 ? 65504.0f : kernels::kGreatestFloat;
  return greatest / (4 * float(ranks));
}

Status find_beyond(Communicator& communicator, const float* data, std::uint64_t count, float limit,
                   bool* found) {
  const device::Device& device = device::owner_of(data);
  device::Stream* stream = nullptr;
  SLIMPI_TRY(communicator.stream_for(device, data, &stream));
  SLIMPI_TRY(communicator.scratch().found.reserve(device, data, device::Place::device, sizeof(int),
                                                  communicator.statistics()));
  int* const flag = reinterpret_cast<int*>(communicator.scratch().found.data());
  device.kernels()->find_beyond(data, limit, count, flag, stream);
  int here = 0;
  SLIMPI_TRY(device.copy(&here, flag, sizeof here, stream));
  SLIMPI_TRY(wait_for_stream(device, stream));
  *found = here != 0;
  return Status::ok;
}

Residual residual_of(const Slot& slot) {
  const auto found = slot.arrays.find("residual");
  if (found == slot.arrays.end() || found->second.elements == 0) return {};
  return {reinterpret_cast<float*>(found->second.memory.data()), found->second.elements};
}

Status KeptResidual::copy(Communicator& communicator, const float* from, float* to) {
  const device::Device& device = device::owner_of(from);
  device::Stream* stream = nullptr;
  SLIMPI_TRY(communicator.stream_for(device, from, &stream));
  device.kernels()->sum(&from, 1, count_, to, stream);
  return wait_for_stream(device, stream);
}

Status KeptResidual::keep(const Call& call) {
  const Residual residual = residual_of(*call.slot);
  if (residual.count == 0) return Status::ok;
  SLIMPI_TRY(copy_.reserve(device::owner_of(residual.data), residual.data, device::Place::device,
                           residual.count * sizeof(float), call.communicator.statistics()));
  count_ = residual.count;
  return copy(call.communicator, residual.data, reinterpret_cast<float*>(copy_.data()));
}

Status KeptResidual::restore_unless_finite(const Call& call) {
  bool beyond = false;
  SLIMPI_TRY(
      find_beyond(call.communicator, call.out, call.count, kernels::kGreatestFloat, &beyond));
  if (!beyond) return Status::ok;
  return copy(call.communicator, reinterpret_cast<const float*>(copy_.data()),
              residual_of(*call.slot).data);
}

}  // namespace slimpi::algorithm
