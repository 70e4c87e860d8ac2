// SPDX-License-Identifier: BSD-3-Clause
// One allreduce on its way through slimpi: the plan that policy made for it, and the call itself.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/config.h"
#include "base/statistics.h"
#include "comm/node_layout.h"
#include "device/device.h"

namespace slimpi::algorithm {
struct Algorithm;
}  // namespace slimpi::algorithm

namespace slimpi::comm {

class Communicator;
struct TensorState;

// How one call is answered; decided by policy from what every rank knows.
struct Plan {
  const algorithm::Algorithm* algorithm = nullptr;
  kernels::Format format;
  Hierarchy hierarchy = Hierarchy::automatic;
  bool error_feedback = false;
  std::uint64_t start = 0;
  bool needs_state = false;  // the call needs one: for state, or to count the buffer's calls
  double max_error = 0;  // of the total, relative L2: the codec is chosen for it; 0: format is it
  std::string hook;      // path of the user's shared object; empty for other algorithms
  std::optional<Shape> shape;  // of this buffer, from slimpi_set_shape; compared before it is used
};

// One allreduce to be answered. `in` and `out` hold `count` floats in memory of `device`; in == out
// when the caller said MPI_IN_PLACE. `in` is never written.
struct Call {
  Communicator& communicator;
  const Plan& plan;
  const float* in;
  float* out;
  std::uint64_t count;
  const device::Device& device;
  device::Stream* stream;
  std::uint64_t number;  // counts the communicator's compressed calls, alike on all ranks
  TensorState* state;    // state of this buffer; null where the plan needs none

  // Set by run when all ranks found together that the call goes to MPI after all; out and the state
  // are as they were then.
  std::optional<BypassReason> passed = {};

  // Where the exchange between nodes keeps the sums of this rank's chunk as they were before they
  // were encoded, in memory of the device; null where nobody asks.
  float* totals = nullptr;
};

}  // namespace slimpi::comm
