// SPDX-License-Identifier: BSD-3-Clause
// How a call that slimpi took ends when something fails.
#include <string>

#include "base/activity.h"
#include "base/exceptions.h"
#include "base/float_environment.h"
#include "call/element_type.h"
#include "call/runtime.h"

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

namespace {

// The state of the program's communicator; null where there is none. Where it cannot be made, this
// rank makes all of them leave the communicator's sums to MPI.
comm::Communicator* find_or_decline(Runtime& runtime, mpi::Comm comm, std::optional<int>* raised) {
  comm::Communicator* communicator = nullptr;
  const Status status = caught([&] { communicator = runtime.find(comm, raised); });
  if (status != Status::ok) runtime.leave_alone(comm);
  return communicator;
}

// A sum of another type goes to MPI, too, but the other ranks may wait to compare SLIMPI_TYPES
// first.
Outcome recover_untyped(Runtime& runtime, const Allreduce& request, Status status) {
  const ElementType type = type_of(request);
  if (request.op != mpi::abi.op_sum || request.count <= 0 || type == ElementType::float32)
    return {};
  const OwnFloats environment;
  std::optional<int> raised;
  comm::Communicator* const communicator = find_or_decline(runtime, request.comm, &raised);
  if (raised) return Outcome::finished(*raised);
  if (communicator == nullptr || !communicator->compares(type)) return {};
  const Status compared =
      communicator->connected() ? status : caught([&] { return communicator->compare_type(type); });
  return compared == Status::ok ? Outcome()
                                : Outcome::finished(fail_call(runtime, *communicator, compared));
}

}  // namespace

// Which ranks know the call, when this one cannot go on?
//   no runtime        it ended the job, or MPI does not run (Runtime::begin)
//   not a float sum   all ranks leave it to MPI
//   no internal communicator yet: the others wait for this rank to make it. It refuses, and all
//                     ranks leave the communicator's sums to MPI.
//   later             the others may have begun the call; they learn of the failure by messages.
Outcome recover(const Allreduce& request, Status status) {
  Runtime* const runtime = Runtime::started();
  if (runtime == nullptr) return {};
  if (!is_float_sum(request)) return recover_untyped(*runtime, request, status);
  const OwnFloats environment;
  std::optional<int> raised;
  comm::Communicator* communicator = nullptr;
  {
    const FailureScope looking_up;  // `status` and its text are those of the call
    communicator = find_or_decline(*runtime, request.comm, &raised);
    if (raised) return Outcome::finished(*raised);
    if (communicator == nullptr || !has_peers(*communicator)) return {};
    communicator->decline();
    if (communicator->unusable()) return {};
  }
  return Outcome::finished(fail_call(*runtime, *communicator, status));
}

int fail_on(mpi::Comm comm, Status status) {
  Runtime* const runtime = Runtime::started();
  return runtime == nullptr ? mpi::abi.err_other : runtime->raise(comm, status);
}

}  // namespace slimpi::call
