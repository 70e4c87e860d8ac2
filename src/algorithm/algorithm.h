// SPDX-License-Identifier: BSD-3-Clause
// What an algorithm is: a row of the table in table.cpp. Adding one is a file with its run
// function, a row, and a row in the tests.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "algorithm/layout.h"
#include "base/config.h"
#include "base/statistics.h"
#include "device/device.h"

namespace slimpi::algorithm {

class Communicator;
struct Call;
struct Plan;
struct Slot;

struct Algorithm {
  const char* name;                       // of SLIMPI_ALGORITHM
  kernels::Coding coding;                 // what crosses the network
  Rounding rounding = Rounding::nearest;  // of the quantizer where SLIMPI_ROUNDING is unset
  bool flat = false;                      // over all ranks, whatever the hierarchy
  bool same_bytes = true;                 // guarantee 1; false for the decentralized ones
  bool talks_to_peers = false;            // SLIMPI_PEERS and SLIMPI_INTERVAL concern it
  bool exact = false;                     // loses nothing that error feedback could keep
  bool keeps_state = false;               // needs a slot even without error feedback
  bool within_budget = false;             // SLIMPI_MAX_ERROR holds for it
  bool finite_only = false;               // with an infinity or a NaN on any rank, MPI answers
  bool finds_nonfinite = false;           // run itself sees what any rank's input has of these
  bool error_feedback = false;            // where SLIMPI_ERROR_FEEDBACK is unset
  std::uint64_t start = 0;                // where SLIMPI_START is unset
  bool shapes = false;                    // looks buffers up in SLIMPI_POWERSGD_SHAPES
  Status (*run)(Call& call);
  // Reserves the scratch memory that run needs for this plan and count. `like` is the caller's
  // buffer.
  Status (*reserve)(Communicator& communicator, const Plan& plan, std::uint64_t count,
                    const device::Device& device, const void* like);
  // Makes the arrays that run needs in call.slot, so that the ranks can agree that all could. Only
  // called with a slot; null where there are none.
  Status (*reserve_state)(Call& call) = nullptr;
  // What has to be there before a call of this plan is prepared; may be null. Collective, and an
  // error is found by all ranks.
  Status (*open)(Communicator& communicator, const Plan& plan) = nullptr;
  // Why this machine can not run it, "" if it can; null: every machine can.
  std::string (*missing)() = nullptr;
};

// The row called `name`, or "hook" for hook:PATH; null when this build has none.
const Algorithm* find(std::string_view name);
std::span<const Algorithm> all();

// How one call is answered; decided by policy from what every rank knows.
struct Plan {
  const Algorithm* algorithm = nullptr;
  kernels::Format format;
  Hierarchy hierarchy = Hierarchy::automatic;
  bool error_feedback = false;
  std::uint64_t start = 0;
  bool slot = false;     // the call needs one: for state, or to count the buffer's calls
  double max_error = 0;  // of the total, relative L2: the coding is chosen for it; 0: format is it
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
  Slot* slot;            // state of this buffer; null where the plan needs none

  // Set by run when all ranks found together that the call goes to MPI after all; out and the state
  // are as they were then.
  std::optional<Passed> passed = {};

  // Where the exchange between nodes keeps the sums of this rank's chunk as they were before they
  // were encoded, in memory of the device; null where nobody asks.
  float* totals = nullptr;
};

}  // namespace slimpi::algorithm
