// SPDX-License-Identifier: BSD-3-Clause
// Starts nonblocking sums, and decides at once where that needs no other rank; otherwise the fiber
// of the sum decides.
#include <atomic>
#include <list>
#include <memory>

#include "base/exceptions.h"
#include "base/fiber.h"
#include "call/admission.h"
#include "call/arguments.h"
#include "call/candidates.h"
#include "call/completion.h"
#include "call/element_type.h"
#include "call/entry.h"
#include "call/estimate.h"
#include "call/nonblocking.h"
#include "call/request_list.h"
#include "call/sum.h"
#include "comm/waiter.h"
#include "mpi/internal_comm.h"

namespace slimpi::call {

namespace {

// The state of a nonblocking sum that MPI keeps until its generalized request is freed. Unlike a
// persistent sum, a nonblocking sum cannot use a message to this process as its request. Before the
// ranks have an internal communicator, the message would need a communicator of this process alone,
// on which MPICH's messages are not safe among threads.
struct GeneralizedRequest {
  GeneralizedRequest(Runtime& its_runtime, const comm::Communicator& communicator)
      : runtime(its_runtime), comm(communicator.user()), of_comm(communicator.id) {}
  Runtime& runtime;
  const mpi::Comm comm;
  const std::uint64_t of_comm;
  mpi::Request handle = mpi::abi.request_null;
  bool failed = false;
  std::atomic<bool> freed{false};  // by MPI, which may use the handle again
  std::atomic<int> holders{2};     // MPI and the sum; either may end first
};

// All nonblocking sums of the process whose requests MPI has not freed, or that are not complete.
RequestList<GeneralizedRequest>& requests() {
  return RequestList<GeneralizedRequest>::instance();
}

void release(GeneralizedRequest* generalized) {
  if (--generalized->holders == 0)
    (void)requests().take([&](const GeneralizedRequest& one) { return &one == generalized; });
}

int query(void* extra, mpi::MessageStatus* status) {
  const GeneralizedRequest& generalized = *static_cast<GeneralizedRequest*>(extra);
  generalized.runtime.api.Status_set_cancelled(status, 0);
  generalized.runtime.api.Status_set_elements(status, mpi::abi.type_byte, 0);
  // If slimpi does not intercept the function that completes the request, the program learns of the
  // error only by the code that this callback returns.
  if (!generalized.failed || is_completing()) return mpi::kSuccess;
  forget_failure(generalized.handle);
  return mpi::abi.err_other;
}

int free_request(void* extra) {
  auto* const generalized = static_cast<GeneralizedRequest*>(extra);
  generalized->freed = true;
  release(generalized);
  return mpi::kSuccess;
}

// Refuses to cancel: the MPI standard does not allow it for collectives.
int cancel(void*, int complete) {
  return complete != 0 ? mpi::kSuccess : mpi::abi.err_other;
}

// Returns whether this rank can make the internal communicator (slimpi's own) in a fiber.
bool can_meet_in_fiber(const Runtime& runtime) {
  return mpi::can_help(runtime.api) && mpi::can_make_internal_in_fiber(runtime.api);
}

// Returns whether the ranks can make nonblocking sums of the communicator; the same on all ranks at
// the same call. They can if they have the internal communicator and MPI_THREAD_MULTIPLE, or if the
// first such sum can make that communicator in its fiber. If this rank cannot, it tells the others.
bool meet_or_refuse(Runtime& runtime, comm::Communicator& communicator) {
  if (communicator.unusable()) return communicator.nonblocking.next_is_undecided();
  // Once a sum has begun, its fiber changes the facts that are tested below, at different times on
  // each rank. The ranks would get different answers, so they test these facts no more.
  if (communicator.nonblocking.any()) return true;
  if (communicator.connected()) return communicator.threaded();
  if (can_meet_in_fiber(runtime)) {
    // If MPI once had no free context id, nonblocking sums of the communicator stay refused, even
    // when there is one again: the ranks could not change the answer at the same call.
    if (!communicator.refused() && communicator.has_room()) return true;
    communicator.refuse_to_meet(mpi::Refusal::no_room);
    return false;
  }
  communicator.refuse_to_meet();
  return false;
}

Status begin_in_fiber(Runtime& runtime, comm::Communicator& communicator, const Request& request,
                      void* handle) {
  std::list<GeneralizedRequest> list;
  GeneralizedRequest& made = list.emplace_back(runtime, communicator);
  Pending& sum = add_sum(std::make_unique<Pending>(runtime, communicator, request));
  const int code = runtime.api.Grequest_start(&query, &free_request, &cancel, &made, &sum.handle);
  if (code != mpi::kSuccess) {
    remove_sum(sum);
    return fail(Status::mpi, mpi::error_text(runtime.api, code));
  }
  made.handle = sum.handle;
  requests().add(list);
  sum.end_argument = &made;
  sum.end = [](void* argument, bool failed) {
    GeneralizedRequest& ended = *static_cast<GeneralizedRequest*>(argument);
    ended.failed = failed;
    ended.runtime.api.Grequest_complete(ended.handle);
    release(&ended);
  };
  mpi::write(handle, sum.handle);
  begin_sum(sum);
  return Status::ok;
}

// Begins a nonblocking sum in a fiber, or decides at once that MPI makes it. The caller has
// HoldFibers, and the ranks are not comparing how many sums each has begun.
Outcome decide_or_begin(const Admission& admitted, const Request& request, void* handle) {
  Runtime& runtime = *admitted.runtime;
  comm::Communicator& communicator = *admitted.communicator;
  if (CallEstimate::running() != nullptr) {
    // Ranks without SLIMPI_ESTIMATE would wait for this rank, so it tells them that MPI sums.
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
  // The other ranks make the sum, so this rank tells them of the failure. As long as it has no
  // internal communicator for that, the job ends.
  if (!communicator.connected()) end_for(request.comm, status);
  communicator.end_nonblocking();
  return Outcome::finished(fail_call(runtime, communicator, status));
}

}  // namespace

mpi::Comm comm_of_nonblocking(mpi::Request handle) {
  const GeneralizedRequest* const found = handle == mpi::abi.request_null
                                              ? nullptr
                                              : requests().find([&](const GeneralizedRequest& one) {
                                                  return one.handle == handle && !one.freed;
                                                });
  return found == nullptr ? mpi::abi.comm_null
                          : comm_for_errors(found->runtime, found->comm, found->of_comm);
}

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
  // If this thread is inside a fiber, a hook has made this call, or a callback that MPI runs. Such
  // a call goes to MPI. A call with a null handle goes to MPI, too, which reports the error.
  if (Fiber::inside() || handle == nullptr) return {};
  if (const Runtime* const runtime = Runtime::started();
      request.gathers() && runtime != nullptr && !runtime->gathers)
    return {};  // the default, so no call may wait until it can hold the fibers
  take_description(request);
  for (comm::Waiter waiter(comm::Waiter::Poll::mpi);; waiter.rest()) {
    const HoldFibers held;
    const Admission admitted = admit(request, Way::nonblocking);
    if (admitted.communicator == nullptr) return admitted.outcome;
    if (!admitted.communicator->nonblocking.comparing())
      return decide_or_begin(admitted, request, handle);
  }
}

}  // namespace slimpi::call
