// SPDX-License-Identifier: BSD-3-Clause
// What an algorithm is: a row of the table in table.cpp. Adding one is a file with its run
// function, a row, and a row in the tests.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/config.h"
#include "base/statistics.h"
#include "comm/call.h"
#include "device/device.h"

namespace slimpi::algorithm {

struct Algorithm {
  const char* name;                       // of SLIMPI_ALGORITHM
  kernels::Codec codec;                   // what crosses the network
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
  Status (*run)(comm::Call& call);
  // Reserves the scratch memory that run needs for this plan and count. `like` is the caller's
  // buffer.
  Status (*reserve)(comm::Communicator& communicator, const comm::Plan& plan, std::uint64_t count,
                    const device::Device& device, const void* like);
  // Makes the arrays that run needs in call.slot, so that the ranks can agree that all could. Only
  // called with a slot; null where there are none.
  Status (*reserve_state)(comm::Call& call) = nullptr;
  // What has to be there before a call of this plan is prepared; may be null. Collective, and an
  // error is found by all ranks.
  Status (*open)(comm::Communicator& communicator, const comm::Plan& plan) = nullptr;
  // Why this machine cannot run it, "" if it can; null: every machine can.
  std::string (*missing)() = nullptr;
};

// The row called `name`, or "hook" for hook:PATH; null when this build has none.
const Algorithm* find(std::string_view name);
std::span<const Algorithm> all();

}  // namespace slimpi::algorithm
