// SPDX-License-Identifier: BSD-3-Clause
// How a call that slimpi took ends when something fails.
#include <string>

#include "base/exceptions.h"
#include "call/runtime.h"
#include "observe/activity.h"

namespace slimpi::call {

namespace {

// A message says what differs, but not in which call.
Status name_call(Status status) {
  const ActiveCall* const active = ActiveCall::current();
  const std::string text = failure_text();
  if (status == Status::bad_message && active != nullptr && text.find(" in call ") == text.npos)
    return fail(status, text + ", in " + describe_call(active->record()));
  return status;
}

}  // namespace

int fail_call(Runtime& runtime, comm::Communicator& communicator, Status status) {
  // A failed hook is known to all ranks, and no message is in flight.
  if (status == Status::hook) return runtime.raise(communicator.user(), status, true);
  // A disagreement too is known to all ranks. Rank 0 has already logged it.
  if (status == Status::disagreement) return runtime.raise(communicator.user(), status, false);
  communicator.give_up();
  (void)caught([&] { return name_call(status); });
  communicator.exchange().report_failure(status);
  return runtime.raise(communicator.user(), status, !communicator.exchange().failure_reported());
}

}  // namespace slimpi::call
