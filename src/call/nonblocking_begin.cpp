// SPDX-License-Identifier: BSD-3-Clause
// How a nonblocking sum begins: whether it is taken, and what the first one of a communicator does.
#include <optional>
#include <utility>

#include "algorithm/hook.h"
#include "base/environment.h"
#include "base/exceptions.h"
#include "base/fiber.h"
#include "call/element_type.h"
#include "call/estimate.h"
#include "call/nonblocking.h"
#include "call/prepared_calls.h"
#include "call/take_or_bypass.h"

namespace slimpi::call {

namespace {

// The first nonblocking sum of a communicator is taken from this size on. The same on all ranks
// before they compare their options; shorter ones are not worth what ranks do when they meet.
constexpr std::uint64_t kLeastFirstBytes = 64 << 10;

// Whether this rank can take nonblocking sums. A thread must be able to let them make progress
// while the program blocks, in MPI or elsewhere, and other ranks wait for its part.
bool has_threads(const Runtime& runtime) {
  int level = 0;
  return runtime.api.Query_thread(&level) == mpi::kSuccess && level == mpi::abi.thread_multiple;
}

// Whether a nonblocking sum is taken, but for what policy says; the same on all ranks at the same
// call. The first one makes the ranks meet.
bool takes_nonblocking(Runtime& runtime, comm::Communicator& communicator,
                       const Allreduce& request) {
  if (communicator.unusable()) return false;
  if (communicator.connecting()) {
    // Begun by an earlier sum.
  } else if (communicator.connected()) {
    if (!communicator.threaded() || CallEstimate::running() != nullptr) return false;
  } else {
    if (bytes_of(request) < kLeastFirstBytes) return false;
    if (CallEstimate::running() != nullptr || !has_threads(runtime)) {
      communicator.refuse_to_meet();
      return false;
    }
    communicator.connect_in_fiber();
  }
  // Sums that begin before the ranks have compared their options are decided by this rank's own.
  if (!communicator.agreed() && !has_sums(communicator)) {
    communicator.read_name();
    prepare_calls(runtime, communicator);
  }
  return true;
}

// With SLIMPI_ESTIMATE: what would become of a nonblocking sum. MPI makes it; no rank waits.
Outcome estimate_begun(Runtime& runtime, comm::Communicator& communicator,
                       const Allreduce& request) {
  const bool threads = has_threads(runtime);
  if (threads && !communicator.agreed()) prepare_calls(runtime, communicator);
  const policy::Decision* const decision =
      threads ? &communicator.attachment<PreparedCalls>().find(request).decision : nullptr;
  std::optional<CallEstimate::Way> way;
  if (decision != nullptr && decision->take)
    way =
        CallEstimate::running()->way_of(communicator, decision->plans.front(), runtime.world_size);
  if (!way) return bypass(runtime, BypassReason::nonblocking, communicator, request);
  // Types that SLIMPI_TYPES does not name are only predicted.
  const BypassReason reason =
      has_type(communicator, request) ? BypassReason::off : BypassReason::datatype;
  runtime.count_bypass(communicator, reason, request);
  CallEstimate::running()->nonblocking(request, reason, *way);
  return {};  // it is recorded
}

}  // namespace

bool wants_threads() {
  return load_config(slimpi_environment()).config.progress == Progress::thread;
}

Outcome begin(const Allreduce& request, void* handle) {
  // A hook's own calls, or those of callbacks that MPI makes meanwhile.
  if (Fiber::inside()) return {};
  std::optional<DescribedTensor> tensor = take_description(request);
  const HoldFibers held;
  const Entered entered = enter_nonblocking(request);
  if (entered.communicator == nullptr) return entered.outcome;
  Runtime& runtime = *entered.runtime;
  comm::Communicator& communicator = *entered.communicator;
  if (entered.untyped) {
    if (!communicator.connected() && bytes_of(request) >= kLeastFirstBytes)
      communicator.refuse_type(type_of(request));
    return entered.outcome;
  }
  const bool takes = takes_nonblocking(runtime, communicator, request);
  if (CallEstimate::running() != nullptr) return estimate_begun(runtime, communicator, request);
  if (!takes) return bypass(runtime, BypassReason::nonblocking, communicator, request);
  const policy::Decision& decision =
      communicator.attachment<PreparedCalls>().find(request).decision;
  if (!decision.take) return bypass(runtime, decision.reason, communicator, request);
  return begin_in_fiber(runtime, communicator, request, std::move(tensor), handle);
}

// The other ranks that take such a sum wait in its fiber, and learn there that this rank does not.
// This rank may not go to MPI, where they are not.
Outcome recover_begun(const Allreduce& request, Status status) {
  Runtime* const runtime = Runtime::started();
  if (runtime == nullptr || !is_float_sum(request)) return {};
  comm::Communicator* communicator = runtime->find_made(request.comm);
  // Sums that began before may make the ranks meet.
  if (communicator != nullptr) wait_for_sums(*communicator);
  if (communicator != nullptr && (communicator->connected() || communicator->unusable()))
    return recover(request, status);
  if (bytes_of(request) < kLeastFirstBytes || CallEstimate::running() != nullptr ||
      !has_threads(*runtime))
    return {};
  if (communicator == nullptr) {
    const FailureScope looking_up;  // `status` and its text are those of the call
    if (caught([&] { communicator = runtime->find(request.comm); }) != Status::ok) {
      // Without its state, later sums of the communicator would go to MPI here and fail elsewhere.
      runtime->option_error = "no host memory";  // short: allocates nothing
      runtime->end_job(request.comm);
    }
    if (communicator == nullptr || !has_peers(*communicator)) return {};
  }
  communicator->connect_in_fiber();
  communicator->decline();
  return Outcome::finished(fail_call(*runtime, *communicator, status));
}

// MPI has accepted the arguments.
void count_nonblocking(const Allreduce& call) {
  if (takes_description(call)) DescribedTensor::take_next();
  Runtime* const runtime = Runtime::get(call.comm);
  if (runtime == nullptr || algorithm::inside_hook()) return;
  int size = 0;
  runtime->api.Comm_size(call.comm, &size);
  bypass(*runtime, BypassReason::nonblocking, size > 1 ? &call : nullptr);
  estimate_nonblocking(call);
}

void estimate_nonblocking(const Allreduce& call) {
  if (CallEstimate* const estimate = CallEstimate::running(); estimate != nullptr)
    estimate->nonblocking(call);
}

}  // namespace slimpi::call
