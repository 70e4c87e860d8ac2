// SPDX-License-Identifier: BSD-3-Clause
// An algorithm is a row of the table in table.cpp. A new algorithm needs a file with its run
// function, a row in the table, and a row in the tests.
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
  const char* name;                       // value of SLIMPI_ALGORITHM
  kernels::Codec codec;                   // of messages between nodes
  Rounding rounding = Rounding::nearest;  // where SLIMPI_ROUNDING is unset
  bool flat = false;                      // always hierarchy flat
  bool same_bytes = true;                 // guarantee 1 of slimpi(7); false: decentralized, hook
  bool talks_to_peers = false;            // uses SLIMPI_PEERS and SLIMPI_INTERVAL
  bool exact = false;                     // has no compression error for error feedback
  bool keeps_state = false;               // needs tensor state even without error feedback
  bool within_budget = false;             // supports SLIMPI_MAX_ERROR
  bool finite_only = false;               // bypass if any rank has an infinity or a NaN
  bool finds_nonfinite = false;           // run itself detects such input of any rank
  bool error_feedback = false;            // default of SLIMPI_ERROR_FEEDBACK
  std::uint64_t start = 0;                // default of SLIMPI_START
  bool shapes = false;                    // uses SLIMPI_POWERSGD_SHAPES
  Status (*run)(comm::Call& call);
  // Reserves the scratch memory that run needs for this plan and count. `like` is the program's
  // buffer.
  Status (*reserve)(comm::Communicator& communicator, const comm::Plan& plan, std::uint64_t count,
                    const device::Location& location);
  // Allocates the arrays that run needs in call.state. It is called before run, so that the ranks
  // can agree whether all succeeded. It is called only if call.state is not null. Null if the
  // algorithm has no such arrays.
  Status (*reserve_state)(comm::Call& call) = nullptr;
  // Opens what a call of this plan needs, before the call is prepared. May be null. Collective; an
  // error is returned on all ranks.
  Status (*open)(comm::Communicator& communicator, const comm::Plan& plan) = nullptr;
  // The reason why this machine cannot run the algorithm, "" if it can. Null: every machine can.
  std::string (*missing)() = nullptr;
};

// The row called `name`, or the row "hook" for hook:PATH; null if this build has no such row.
const Algorithm* find(std::string_view name);
std::span<const Algorithm> all();

}  // namespace slimpi::algorithm
