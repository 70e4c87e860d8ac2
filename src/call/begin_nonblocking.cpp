// SPDX-License-Identifier: BSD-3-Clause
// Begins nonblocking sums. If this rank can decide alone whether slimpi takes over a sum, it does
// so at once; otherwise the sum's fiber decides together with the other ranks.
#include <memory>
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

// A nonblocking sum, whose request is a generalized request. The request of a persistent sum, a
// receive from this process itself, would not do here: before the ranks have an internal
// communicator, the message would need a communicator of this process alone, and on such
// communicators MPICH's messages are not thread-safe.
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

Status begin_in_fiber(Runtime& runtime, comm::Communicator& communicator, const Request& request,
                      void* handle) {
  const auto sum = std::make_shared<GeneralizedSum>(runtime, communicator, request);
  HeldRequests::Entry entry{sum};
  add_sum(sum);
  if (const int code = sum->make_request(); code != mpi::kSuccess) {
    remove_sum(*sum);
    return fail(Status::mpi, mpi::error_text(runtime.api, code));
  }
  HeldRequests::instance().add(entry);
  mpi::write(handle, sum->handle);
  begin_sum(*sum);
  return Status::ok;
}

// Begins a nonblocking sum in a fiber, or decides at once that MPI makes it. The caller holds
// HoldFibers, and has checked that the ranks are not just comparing how many sums each has begun.
Outcome decide_or_begin(comm::Communicator& communicator, const Request& request, void* handle) {
  Runtime& runtime = *Runtime::started();
  if (CallEstimate::running() != nullptr) {
    // Ranks without SLIMPI_ESTIMATE would wait for this rank, so it tells them that MPI makes the
    // sum.
    if (!communicator.connected()) communicator.refuse_to_meet();
    return estimate_begun(runtime, communicator, request);
  }
  if (!meet_or_refuse(runtime, communicator)) {
    if (bytes_of(request) >= communicator.config().min_size) count_in_order(communicator);
    const bool could = communicator.refused() && can_meet_in_fiber(runtime);
    return bypass(runtime,
                  communicator.unusable() || could       ? BypassReason::failure
                  : stays_on_node(communicator, request) ? BypassReason::single_node
                                                         : BypassReason::nonblocking,
                  communicator, request);
  }
  const std::uint64_t number = communicator.nonblocking.begin();
  if (communicator.agreed() && communicator.nonblocking.began_agreed(number)) {
    const algorithm::Decision& decision = communicator.attachment<Decisions>().find(request);
    const bool stays =
        communicator.nonblocking.began_on_one_node(number) && stays_on_node(communicator, request);
    if (!decision.take || stays) {
      const BypassReason reason = decision.take ? BypassReason::single_node : decision.reason;
      if (reason != BypassReason::small) count_in_order(communicator);
      return bypass(runtime, reason, communicator, request);
    }
  }
  const Status status =
      caught([&] { return begin_in_fiber(runtime, communicator, request, handle); });
  if (status == Status::ok) return Outcome::finished(mpi::kSuccess);
  // The other ranks run the sum, so this rank must tell them of the failure. Without an internal
  // communicator it cannot, and the job ends.
  if (!communicator.connected()) end_for(request.comm, status);
  communicator.end_nonblocking();
  return Outcome::finished(fail_call(runtime, communicator, status));
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
  for (comm::Waiter waiter(comm::Waiter::Poll::mpi);; waiter.rest()) {
    const HoldFibers held;
    Outcome outcome;
    comm::Communicator* const communicator = admit(request, Way::nonblocking, &outcome);
    if (communicator == nullptr) return outcome;
    if (!communicator->nonblocking.comparing())
      return decide_or_begin(*communicator, request, handle);
  }
}

}  // namespace slimpi::call
