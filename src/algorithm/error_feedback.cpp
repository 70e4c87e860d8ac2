// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/error_feedback.h"

#include "comm/communicator.h"
#include "comm/find_beyond.h"
#include "comm/stream_wait.h"

namespace slimpi::algorithm {

// Let a be the limit and N the number of ranks. A node of k ranks encodes values of at most k a +
// a, and they decode to no more. The sum of all nodes and the owner's residual is at most (2 N + 1)
// a. The rest is a margin for rounding.
float safe_limit(const kernels::Format& format, int ranks) {
  return kernels::row_of(format.codec).greatest / (4 * float(ranks));
}

Residual residual_of(const comm::TensorState& state) {
  const auto found = state.arrays.find({comm::StateArray::residual});
  if (found == state.arrays.end() || found->second.elements == 0) return {};
  return {reinterpret_cast<float*>(found->second.memory.data()), found->second.elements,
          found->second.memory.location()};
}

Status KeptResidual::copy(const comm::Call& call, const float* from, float* to) {
  const device::Location location = copy_.location();
  device::Stream* stream = nullptr;
  SLIMPI_TRY(call.communicator.stream_for(location, &stream));
  location.device->kernels()->sum(&from, 1, count_, to, stream);
  return comm::synchronize({*location.device, stream});
}

Status KeptResidual::keep(const comm::Call& call) {
  const Residual residual = residual_of(*call.state);
  if (residual.count == 0) return Status::ok;
  SLIMPI_TRY(copy_.reserve(residual.location, device::Place::device, residual.count * sizeof(float),
                           call.communicator.statistics()));
  count_ = residual.count;
  return copy(call, residual.data, reinterpret_cast<float*>(copy_.data()));
}

Status KeptResidual::restore_unless_finite(const comm::Call& call) {
  bool beyond = false;
  SLIMPI_TRY(
      comm::find_beyond(call, call.location, call.out, call.count, kernels::kMaxFloat, &beyond));
  if (!beyond) return Status::ok;
  return copy(call, reinterpret_cast<const float*>(copy_.data()), residual_of(*call.state).data);
}

}  // namespace slimpi::algorithm
