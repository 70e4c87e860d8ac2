// SPDX-License-Identifier: BSD-3-Clause
// Per-thread state of the MPI calls that a thread is in. A call that runs in a fiber has its own
// copy, which moves with the fiber from thread to thread (fiber.h). Each member is used only by the
// file that its comment names.
#pragma once
#include <cstdint>

namespace slimpi {

class ActiveCall;
class FailureScope;
class OwnFloats;

struct CallLocals {
  ActiveCall* active = nullptr;      // the innermost ActiveCall; activity.cpp
  OwnFloats* floats = nullptr;       // the innermost OwnFloats; float_environment.cpp
  FailureScope* failures = nullptr;  // the innermost FailureScope; status.cpp
  int inside_hook = 0;               // hook functions that are running; algorithm/hook.cpp
  std::uint32_t trace_row = 0;       // 1 + the row of this thread or fiber; 0: none yet; trace.cpp
};

inline constinit thread_local CallLocals t_locals;

}  // namespace slimpi
