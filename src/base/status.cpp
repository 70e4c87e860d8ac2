// SPDX-License-Identifier: BSD-3-Clause
#include "base/status.h"

namespace slimpi {

namespace {
// Has no destructor: the report is written after the thread's destructors have run.
constexpr std::size_t kMost = 2048;
thread_local char g_text[kMost];
}  // namespace

Status fail(Status status, const std::string& text) {
  g_text[text.copy(g_text, kMost - 1)] = '\0';
  return status;
}

std::string failure_text() {
  return g_text;
}

const char* to_string(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::no_memory:
      return "no memory";
    case Status::mpi:
      return "MPI failed";
    case Status::bad_message:
      return "bad message";
    case Status::disagreement:
      return "ranks disagree";
    case Status::device:
      return "device failed";
    case Status::hook:
      return "hook failed";
    case Status::unsupported:
      return "not supported";
  }
  return "unknown";
}

}  // namespace slimpi
