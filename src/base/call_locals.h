// SPDX-License-Identifier: BSD-3-Clause
// The state that a thread keeps for the calls that it is in. A call that runs in a fiber (fiber.h)
// has its own, which goes with it from thread to thread. Only the files that own a member use it.
#pragma once
#include <cstdint>

namespace slimpi {

class ActiveCall;
class FailureScope;
class OwnFloats;

struct CallLocals {
  ActiveCall* active = nullptr;      // the innermost; activity.cpp
  OwnFloats* floats = nullptr;       // the innermost; float_environment.cpp
  FailureScope* failures = nullptr;  // the innermost; status.cpp
  int inside_hook = 0;               // functions of hooks; algorithm/hook.cpp
  std::uint32_t trace_row = 0;       // 0: not numbered yet; trace.cpp
};

inline constinit thread_local CallLocals t_locals;

}  // namespace slimpi
