// SPDX-License-Identifier: BSD-3-Clause
// How the calls of this process met state of buffers, for the report.
#pragma once
#include <atomic>
#include <cstdint>
namespace slimpi::call {

struct StateUse {
  std::atomic<std::uint64_t> calls{0};            // that need state
  std::atomic<std::uint64_t> made{0}, reused{0};  // states: made, and used a second time

  static StateUse& all() {
    static StateUse use;
    return use;
  }
};

}  // namespace slimpi::call
