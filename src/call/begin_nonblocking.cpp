// SPDX-License-Identifier: BSD-3-Clause
// Begins nonblocking sums. If this rank can decide alone whether slimpi takes over a sum, it does
// so at once; otherwise the sum's fiber decides together with the other ranks.
#include <memory>
#include <optional>
#include <utility>

#include "base/exceptions.h"
#include "base/fiber.h"
#include "call/admission.h"
#include "call/arguments.h"
#include "call/candidates.h"
#include "call/element_type.h"
#include "call/entry.h"
#include "call/estimate.h"
#include "call/held_sum.h"
#include "call/queue.h"
#include "call/sum.h"
#include "comm/waiter.h"
#include "mpi/internal_comm.h"

namespace slimpi::call {

namespace {

// A nonblocking sum. The program's request for it is a generalized request. (A persistent sum uses
// a receive from this process itself instead. Here the ranks may not have an internal communicator
// yet, so the message would need a communicator of this process alone, where MPICH's messages are
// not thread-safe.)
class GeneralizedSum final : public HeldSum {
 public:
  GeneralizedSum(Runtime& its_runtime, comm::Communicator& its_communicator, Request its_request)
      : HeldSum(its_runtime, its_communicator, its_communicator, std::move(its_request), nullptr) {}

  // Creates the program's request. Returns MPI's code.
  int make_request() { return runtime.api.Grequest_start(&query, &free, &cancel, this, &handle); }

  void before_free() override { drop(); }

 private:
  void complete() override {
    communicator.end_nonblocking();
    runtime.api.Grequest_complete(handle);
  }

  static int query(void* extra, mpi::MessageStatus* status);
  static int free(void* extra);
  static int cancel(void* extra, int complete);
};

int GeneralizedSum::query(void* extra, mpi::MessageStatus* status) {
  GeneralizedSum& sum = *static_cast<GeneralizedSum*>(extra);
  sum.runtime.api.Status_set_cancelled(status, 0);
  sum.runtime.api.Status_set_elements(status, mpi::abi.type_byte, 0);
  // If slimpi does not intercept the function that completes the request, only the code returned
  // here tells the program of the error.
  return is_completing() || !sum.forget_failure() ? mpi::kSuccess : mpi::abi.err_other;
}

int GeneralizedSum::free(void* extra) {
  (void)HeldRequests::instance().take(*static_cast<GeneralizedSum*>(extra));
  return mpi::kSuccess;
}

// Refuses to cancel, since the MPI standard does not allow it for collectives.
int GeneralizedSum::cancel(void*, int complete) {
  return complete != 0 ? mpi::kSuccess : mpi::abi.err_other;
}

// Returns whether this rank can create the internal communicator (slimpi's own) in a fiber.
bool can_meet_in_fiber(const Runtime& runtime) {
  return mpi::can_help(runtime.api) && mpi::can_make_internal_in_fiber(runtime.api);
}

// Returns whether slimpi can run nonblocking sums on the communicator. At the same call all ranks
// get the same answer. The answer is yes if the ranks have the internal communicator and
// MPI_THREAD_MULTIPLE, or if the first nonblocking sum can create that communicator in its fiber.
// If this rank cannot create it, it tells the other ranks (refuse_to_meet()).
bool meet_or_refuse(Runtime& runtime, comm::Communicator& communicator) {
  if (communicator.unusable()) return communicator.nonblocking.next_is_undecided();
  // The fiber of a sum changes what is tested below, at a different time on each rank. So once a
  // sum has begun, the ranks no longer test, because they would get different answers.
  if (communicator.nonblocking.any()) return true;
  if (communicator.connected()) return communicator.threaded();
  if (can_meet_in_fiber(runtime)) {
    // Once MPI has run out of context ids, nonblocking sums on this communicator stay refused, even
    // when MPI has a free id again: the ranks could not all change their answer at the same call.
    if (!communicator.refused() && communicator.has_room()) return true;
    communicator.refuse_to_meet(mpi::Refusal::no_room);
    return false;
  }
  communicator.refuse_to_meet();
  return false;
}

// Creates the program's request for a sum in the queue, and begins the sum.
Status begin(const std::shared_ptr<GeneralizedSum>& sum, void* handle) {
  HeldRequests::Entry entry{sum};
  if (const int code = sum->make_request(); code != mpi::kSuccess)
    return fail(Status::mpi, mpi::error_text(sum->runtime.api, code));
  HeldRequests::instance().add(entry);
  mpi::write(handle, sum->handle);
  begin_sum(*sum);
  return Status::ok;
}

// Returns the outcome of a sum that MPI makes because the ranks cannot run it.
Outcome refuse(Runtime& runtime, comm::Communicator& communicator, const Request& request) {
  const bool small = bytes_of(request) < communicator.config().min_size;
  if (!small) count_in_order(communicator);
  const bool could = communicator.refused() && can_meet_in_fiber(runtime);
  return bypass(runtime,
                communicator.unusable()                ? BypassReason::failure
                : small                                ? BypassReason::small
                : could                                ? BypassReason::failure
                : stays_on_node(communicator, request) ? BypassReason::single_node
                                                       : BypassReason::nonblocking,
                communicator, request);
}

// Decides at once whether MPI makes the sum, if the ranks have agreed on that. Otherwise returns
// nothing. The caller holds HoldFibers, and has made sure that the ranks are not just comparing how
// many sums each of them has begun.
std::optional<Outcome> decide_at_once(Runtime& runtime, comm::Communicator& communicator,
                                      const Request& request) {
  const std::uint64_t number = communicator.nonblocking.begin();
  if (!communicator.agreed() || !communicator.nonblocking.began_agreed(number)) return {};
  const algorithm::Decision& decision = communicator.attachment<Decisions>().find(request);
  const bool stays =
      communicator.nonblocking.began_on_one_node(number) && stays_on_node(communicator, request);
  if (decision.take && !stays) return {};
  const BypassReason reason = decision.take ? BypassReason::single_node : decision.reason;
  if (reason != BypassReason::small) count_in_order(communicator);
  return bypass(runtime, reason, communicator, request);
}

// Puts the sum into the queue of its communicator, or leaves it to MPI. Returns nothing if the sum
// is in the queue, or *status says why it is not.
std::optional<Outcome> decide_or_queue(Runtime& runtime, comm::Communicator& communicator,
                                       const Request& request,
                                       std::shared_ptr<GeneralizedSum>* sum, Status* status) {
  // Until the first sum begins, no fiber uses the communicator, so no lock is needed to refuse it.
  // MPI may then call the program's error handler.
  std::optional<bool> meets;
  if (!communicator.nonblocking.any()) meets = meet_or_refuse(runtime, communicator);
  for (comm::Waiter waiter(comm::Waiter::Poll::mpi);; waiter.rest()) {
    const HoldFibers held;
    if (communicator.nonblocking.comparing()) continue;
    if (!meets) meets = meet_or_refuse(runtime, communicator);
    if (!*meets) return refuse(runtime, communicator, request);
    if (const auto outcome = decide_at_once(runtime, communicator, request)) return outcome;
    *status = caught([&] {
      *sum = std::make_shared<GeneralizedSum>(runtime, communicator, request);
      add_sum(*sum);
    });
    return {};
  }
}

}  // namespace

bool make_complete_request(int (&handles)[2]) {
  const mpi::Api& api = Runtime::started()->api;
  mpi::Request handle = mpi::abi.request_null;
  if (api.Grequest_start([](void*, mpi::MessageStatus*) { return mpi::kSuccess; },
                         [](void*) { return mpi::kSuccess; },
                         [](void*, int) { return mpi::kSuccess; }, nullptr,
                         &handle) != mpi::kSuccess)
    return false;
  handles[0] = int(mpi::Word(mpi::abi.request_null));
  handles[1] = int(mpi::Word(handle));
  return api.Grequest_complete(handle) == mpi::kSuccess;
}

Outcome begin_nonblocking(Request& request, void* handle) {
  // A call inside a fiber comes from a hook, or from a callback that MPI runs, and is left to MPI.
  // So is a call with a null handle, because MPI reports that error.
  if (Fiber::inside() || handle == nullptr) return {};
  if (const Runtime* const runtime = Runtime::started();
      request.gathers() && runtime != nullptr && !runtime->gathers)
    return {};  // all-gathers are off, so this call must not wait below
  take_description(request);
  // No lock is held here, because MPI may call the program's error handler, which may wait for
  // another thread or leave this function by longjmp.
  Outcome not_admitted;
  comm::Communicator* const admitted = admit(request, Way::nonblocking, &not_admitted);
  if (admitted == nullptr) return not_admitted;
  Runtime& runtime = *Runtime::started();
  comm::Communicator& communicator = *admitted;
  if (CallEstimate::running() != nullptr) {
    // Ranks without SLIMPI_ESTIMATE would wait for this rank, so it tells them that MPI makes the
    // sum.
    if (!communicator.connected()) communicator.refuse_to_meet();
    return estimate_begun(runtime, communicator, request);
  }
  std::shared_ptr<GeneralizedSum> sum;
  Status status = Status::ok;
  if (const auto outcome = decide_or_queue(runtime, communicator, request, &sum, &status))
    return *outcome;
  if (status == Status::ok) status = caught([&] { return begin(sum, handle); });
  if (status == Status::ok) return Outcome::finished(mpi::kSuccess);
  if (sum != nullptr) remove_sum(*sum);
  // The other ranks run the sum, so this rank must tell them of the failure. Without an internal
  // communicator it cannot, and the job ends.
  Logging logging{};
  {
    const HoldFibers held;
    if (!communicator.connected()) end_for(request.comm, status);
    communicator.end_nonblocking();
    logging = report_failed_call(communicator, status);
  }
  return Outcome::finished(runtime.errors.raise(communicator.user(), status, logging));
}

}  // namespace slimpi::call
