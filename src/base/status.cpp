// SPDX-License-Identifier: BSD-3-Clause
#include "base/status.h"

#include <cstring>

namespace slimpi {

namespace {
// Has no destructor: the report is written after the thread's destructors have run.
constexpr std::size_t kMost = 2048;
thread_local char g_text[kMost];
}  // namespace

Status fail(Status status, std::string_view text) {
  g_text[text.copy(g_text, kMost - 1)] = '\0';
  return status;
}

std::string failure_text() {
  return g_text;
}

void copy_failure_text(std::span<char> text) {
  text[std::string_view(g_text).copy(text.data(), text.size() - 1)] = '\0';
}

KeptFailure::KeptFailure() {
  static_assert(sizeof text_ == sizeof g_text);
  std::memcpy(text_, g_text, sizeof text_);
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
    case Status::internal:
      return "internal error";
  }
  return "unknown";
}

}  // namespace slimpi
