// SPDX-License-Identifier: BSD-3-Clause
#include "base/status.h"

#include <utility>

namespace slimpi {

namespace {
std::string& last_text() {
  thread_local std::string text;
  return text;
}
}  // namespace

Status fail(Status status, std::string text) {
  last_text() = std::move(text);
  return status;
}

const std::string& failure_text() {
  return last_text();
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
