// SPDX-License-Identifier: BSD-3-Clause
#include "base/status.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/call_locals.h"

namespace slimpi {

namespace {
// The failure text while there is no FailureScope. An array, which has no destructor, because the
// report is written after the thread's destructors have run.
thread_local char t_text[FailureScope::kMost];
}  // namespace

FailureScope::FailureScope() : outer_(t_locals.failures) {
  text_[0] = '\0';
  t_locals.failures = this;
}

FailureScope::~FailureScope() {
  t_locals.failures = outer_;
}

const char* FailureScope::before() const {
  return outer_ == nullptr ? t_text : outer_->text_;
}

char* FailureScope::current() {
  return t_locals.failures == nullptr ? t_text : t_locals.failures->text_;
}

// `text` may be a part of the earlier failure text, so memmove() copies it.
Status fail(Status status, std::string_view text) {
  char* const kept = FailureScope::current();
  const std::size_t length = std::min(text.size(), FailureScope::kMost - 1);
  std::memmove(kept, text.data(), length);
  kept[length] = '\0';
  return status;
}

std::string failure_text() {
  return FailureScope::current();
}

void copy_failure_text(std::span<char> text) {
  const std::string_view kept = FailureScope::current();
  text[kept.copy(text.data(), text.size() - 1)] = '\0';
}

const char* to_string(Status status) {
  constexpr const char* kNames[] = {"ok",
                                    "no memory",
                                    "MPI failed",
                                    "bad message",
                                    "a rank is absent",
                                    "ranks disagree",
                                    "device failed",
                                    "hook failed",
                                    "a process failed",
                                    "communicator revoked",
                                    "not supported",
                                    "internal error"};
  return std::size_t(status) < std::size(kNames) ? kNames[std::size_t(status)] : "unknown";
}

}  // namespace slimpi
