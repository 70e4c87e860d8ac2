// SPDX-License-Identifier: BSD-3-Clause
// The requests of nonblocking sums:
// - how the sums begin, and whether a sum is decided at once or in its fiber;
// - how the functions that complete requests raise the errors of sums.
#include "call/requests.h"

#include <dlfcn.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "base/exceptions.h"
#include "base/fiber.h"
#include "call/admission.h"
#include "call/arguments.h"
#include "call/candidates.h"
#include "call/element_type.h"
#include "call/entry.h"
#include "call/estimate.h"
#include "call/nonblocking.h"
#include "call/staged_requests.h"
#include "comm/waiter.h"
#include "mpi/internal_comm.h"
#include "mpi/search.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {

thread_local int t_completing = 0;  // intercepted functions that this thread is in

// The sums that failed, until their requests are completed or freed.
std::mutex g_mutex;
std::unique_ptr<Pending> g_failed;
std::atomic<int> g_failures{0};  // number of failed sums; changes with the mutex locked

std::unique_ptr<Pending> take_failed(mpi::Request request) {
  if (g_failures.load(std::memory_order_acquire) == 0) return nullptr;
  const std::lock_guard lock(g_mutex);
  for (std::unique_ptr<Pending>* link = &g_failed; *link != nullptr; link = &(*link)->next_failed) {
    if ((*link)->request != request) continue;
    std::unique_ptr<Pending> found = std::move(*link);
    *link = std::move(found->next_failed);
    --g_failures;
    count_fibers(-1, &enter_fibers);
    return found;
  }
  return nullptr;
}

int raise_failure(Pending& sum) {
  const mpi::Comm comm = comm_for_errors(sum.runtime, sum.comm, sum.of_comm);
  if (sum.failure == Status::ok)
    return programs_code([&] {
      sum.runtime.api.Comm_call_errhandler(comm, sum.code);
      return sum.code;
    });
  (void)fail(sum.failure, sum.text);
  return sum.runtime.errors.raise(comm, sum.failure, sum.logs);
}

}  // namespace

mpi::Comm comm_for_errors(Runtime& runtime, mpi::Comm comm, const comm::Communicator* of_comm) {
  return runtime.communicators.find(comm) == of_comm ? comm : mpi::abi.comm_world;
}

void keep_failure(std::unique_ptr<Pending> sum) {
  const std::lock_guard lock(g_mutex);
  sum->next_failed = std::move(g_failed);
  g_failed = std::move(sum);
  ++g_failures;
}

void forget_failure(mpi::Request request) {
  (void)take_failed(request);
}

bool make_complete_request(int (&requests)[2]) {
  const mpi::Api& api = Runtime::started()->api;
  mpi::Request request = mpi::abi.request_null;
  if (api.Grequest_start([](void*, mpi::MessageStatus*) { return mpi::kSuccess; },
                         [](void*) { return mpi::kSuccess; },
                         [](void*, int) { return mpi::kSuccess; }, nullptr,
                         &request) != mpi::kSuccess)
    return false;
  requests[0] = int(mpi::Word(mpi::abi.request_null));
  requests[1] = int(mpi::Word(request));
  return api.Grequest_complete(request) == mpi::kSuccess;
}

bool is_completing() {
  return t_completing != 0;
}

Completing::Completing(int count, const void* requests) : array_(requests) {
  requests_.reserve(std::size_t(count));
  staged_.reserve(std::size_t(count));
  for (int i = 0; i < count; ++i) {
    requests_.push_back(mpi::read_at<mpi::Request>(requests, i));
    staged_.push_back(staged_number(requests_.back()));
  }
  ++t_completing;  // last: the destructor runs only then
}

Completing::~Completing() {
  --t_completing;
}

bool Completing::has_sums() const {
  return are_in_flight(requests_);
}

int Completing::raise(int code, const Completed& completed, bool ends) {
  const auto index_of = [&](int i) {
    return completed.indices == nullptr ? i : completed.indices[i] - completed.base;
  };
  std::unique_ptr<Pending> failed;
  for (int i = 0; i < completed.count; ++i) {
    const int index = index_of(i);
    if (index < 0 || std::size_t(index) >= requests_.size()) continue;
    const mpi::Request request = requests_[std::size_t(index)];
    const bool kept = mpi::read_at<mpi::Request>(array_, index) == request;
    const Finish how = !ends                           ? Finish::stays
                       : kept && code != mpi::kSuccess ? Finish::unsure
                                                       : Finish::ends;
    const int staged = finish_staged(staged_[std::size_t(index)], how);
    if (code == mpi::kSuccess) code = staged;
    if (!ends) continue;
    if (std::unique_ptr<Pending> sum = take_failed(request); sum != nullptr) {
      sum->next_failed = std::move(failed);
      failed = std::move(sum);
    }
  }
  if (failed == nullptr) return code;
  // MPI has no error, so it has not set the errors in the statuses.
  const bool has_statuses = completed.several && completed.statuses != nullptr &&
                            completed.statuses != mpi::abi.status_ignore;
  for (int i = 0; i < completed.count && has_statuses && code == mpi::kSuccess; ++i)
    mpi::set_error(completed.statuses, i, mpi::kSuccess);
  for (; failed != nullptr; failed = std::move(failed->next_failed)) {
    const mpi::Request request = failed->request;
    const int raised = raise_failure(*failed);
    for (int i = 0; i < completed.count && has_statuses; ++i)
      if (const int index = index_of(i); index >= 0 && std::size_t(index) < requests_.size() &&
                                         requests_[std::size_t(index)] == request)
        mpi::set_error(completed.statuses, i, raised);
    if (code == mpi::kSuccess) code = completed.several ? mpi::abi.err_in_status : raised;
  }
  return code;
}

namespace {

// Returns the definition of a function by a tool in front of slimpi; null if no tool defines it.
template <typename Function>
Function* tools_definition(const char* name) {
  void* const seen = dlsym(RTLD_DEFAULT, name);
  if (seen == nullptr) return nullptr;
  const mpi::Image image = mpi::image_of(seen);
  const bool is_tools =
      image.first != mpi::image_of(reinterpret_cast<void*>(&is_completing)).first &&
      !image.name.starts_with("libmpi");
  return is_tools ? reinterpret_cast<Function*>(seen) : nullptr;
}

// Returns whether a tool hides the process's calls of the function from slimpi. Calls the function
// once, with arguments that do nothing.
template <typename... Arguments>
bool is_hidden(const char* name, Arguments... arguments) {
  auto* const tools = tools_definition<int(Arguments...)>(name);
  if (tools == nullptr) return false;
  bool reached = false;
  t_probe = &reached;
  tools(arguments...);
  t_probe = nullptr;
  return !reached;
}

// Returns whether a tool hides the calls of a function that starts requests from slimpi.
template <typename... Arguments>
bool hides_starts(const mpi::Api& api, const char* name, Arguments... arguments) {
  constexpr int kTag = 31740;  // the program sends itself no such message
  mpi::Request request = mpi::abi.request_null;
  if (tools_definition<int(Arguments..., mpi::Request*)>(name) == nullptr ||
      api.Recv_init(nullptr, 0, mpi::abi.type_char, 0, kTag, mpi::abi.comm_self, &request) !=
          mpi::kSuccess)
    return false;
  const bool hidden = is_hidden(name, arguments..., &request);
  if (hidden) api.Cancel(&request);  // the tool has started the request
  api.Wait(&request, mpi::abi.status_ignore);
  api.Request_free(&request);
  return hidden;
}

}  // namespace

// Looks for a tool that knows neither nonblocking nor persistent collectives. If the tool calls
// MPI_Start or MPI_Wait by their PMPI_ names, slimpi does not see these calls, and persistent sums
// would never start.
void find_hidden_functions(const Runtime& runtime) {
  mpi::Request none = mpi::abi.request_null;
  int flag = 0, index = 0, found = 0;
  count_fibers(1, &enter_fibers);
  mpi::MessageStatus* const ignore = mpi::abi.status_ignore;
  mpi::g_completions_hidden = is_hidden("MPI_Wait", &none, ignore) ||
                              is_hidden("MPI_Waitall", 1, &none, ignore) ||
                              is_hidden("MPI_Waitany", 1, &none, &index, ignore) ||
                              is_hidden("MPI_Waitsome", 1, &none, &found, &index, ignore) ||
                              is_hidden("MPI_Test", &none, &flag, ignore) ||
                              is_hidden("MPI_Testall", 1, &none, &flag, ignore) ||
                              is_hidden("MPI_Testany", 1, &none, &index, &flag, ignore) ||
                              is_hidden("MPI_Testsome", 1, &none, &found, &index, ignore);
  mpi::g_starts_hidden =
      hides_starts(runtime.api, "MPI_Start") || hides_starts(runtime.api, "MPI_Startall", 1);
  count_fibers(-1, &enter_fibers);
  if (runtime.world_rank != 0) return;
  if (mpi::g_completions_hidden)
    log_warn(
        "a tool hides functions that complete requests from slimpi, so sums that are not "
        "blocking go to MPI; preload the tool after slimpi");
  else if (mpi::g_starts_hidden)
    log_warn(
        "a tool hides MPI_Start or MPI_Startall from slimpi, so persistent sums go to MPI; "
        "preload the tool after slimpi");
}

// How a nonblocking sum begins.

namespace {

// The state of a nonblocking sum that MPI keeps until its generalized request is freed. Unlike a
// persistent sum, a nonblocking sum cannot use a message to this process as its request. Before the
// ranks have an internal communicator, the message would need a communicator of this process alone,
// on which MPICH's messages are not safe among threads.
struct Completion {
  explicit Completion(const mpi::Api& its_api) : api(its_api) {}
  const mpi::Api& api;
  mpi::Request request = mpi::abi.request_null;
  bool failed = false;
  std::atomic<int> holders{2};  // MPI, which may free the request before the sum ends; the sum
};

void release(Completion* completion) {
  if (--completion->holders == 0) delete completion;
}

int query(void* extra, mpi::MessageStatus* status) {
  const Completion& completion = *static_cast<Completion*>(extra);
  completion.api.Status_set_cancelled(status, 0);
  completion.api.Status_set_elements(status, mpi::abi.type_byte, 0);
  // If slimpi does not see the function that completes the request, only this code tells the
  // program of the error.
  if (!completion.failed || is_completing()) return mpi::kSuccess;
  forget_failure(completion.request);
  return mpi::abi.err_other;
}

int free_request(void* extra) {
  release(static_cast<Completion*>(extra));
  return mpi::kSuccess;
}

// Refuses to cancel: the MPI standard does not allow it for collectives.
int cancel(void*, int complete) {
  return complete != 0 ? mpi::kSuccess : mpi::abi.err_other;
}

// Returns whether the ranks can take nonblocking sums of the communicator; the same on all ranks at
// the same call. The first nonblocking sum makes the internal communicator.
bool takes_nonblocking(Runtime& runtime, comm::Communicator& communicator) {
  if (communicator.unusable()) return communicator.nonblocking.next_is_undecided();
  // After the first sum the answer must not change: in its fiber that sum learns more of the ranks,
  // at different times on each rank.
  if (communicator.nonblocking.any()) return true;
  if (communicator.connected()) return communicator.threaded();
  if (has_threads(runtime) && mpi::can_make_internal_in_fiber()) {
    // If MPI had no room, the communicator stays refused to nonblocking sums, even when there is
    // room again: the ranks could not change the answer at the same call.
    if (!communicator.refused() && communicator.has_room()) return true;
    communicator.refuse_to_meet(mpi::Refusal::no_room);
    return false;
  }
  communicator.refuse_to_meet();
  return false;
}

Outcome begin_in_fiber(Runtime& runtime, comm::Communicator& communicator, const Request& call,
                       void* request) {
  auto sum = std::make_unique<Pending>(runtime, communicator, call);
  auto completion = std::make_unique<Completion>(runtime.api);
  const int code = runtime.api.Grequest_start(&query, &free_request, &cancel, completion.get(),
                                              &completion->request);
  if (code != mpi::kSuccess) return Outcome::finished(code);
  sum->request = completion->request;
  sum->end_argument = completion.release();
  sum->end = [](void* argument, bool failed) {
    Completion& ended = *static_cast<Completion*>(argument);
    ended.failed = failed;
    ended.api.Grequest_complete(ended.request);
    release(&ended);
  };
  mpi::write(request, sum->request);
  start_sum(std::move(sum));
  return Outcome::finished(mpi::kSuccess);
}

// Begins a nonblocking sum. The caller has HoldFibers, and the ranks are not comparing how many
// sums each has begun.
Outcome begin_held(const Admission& admitted, const Request& request, void* handle) {
  Runtime& runtime = *admitted.runtime;
  comm::Communicator& communicator = *admitted.communicator;
  if (CallEstimate::running() != nullptr) {
    // Tells ranks without an estimate of the refusal; otherwise they would wait for this rank.
    if (!communicator.connected()) communicator.refuse_to_meet();
    return estimate_begun(runtime, communicator, request);
  }
  if (!takes_nonblocking(runtime, communicator)) {
    const bool could =
        communicator.refused() && has_threads(runtime) && mpi::can_make_internal_in_fiber();
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
  return begin_in_fiber(runtime, communicator, request, handle);
}

}  // namespace

Outcome begin(Request& request, void* handle) {
  // Inside a fiber, calls of a hook, and of callbacks that MPI runs meanwhile, go to MPI. A null
  // handle goes to MPI, too, which reports the error.
  if (Fiber::inside() || handle == nullptr) return {};
  take_description(request);
  for (comm::Waiter waiter(comm::Waiter::Poll::mpi);; waiter.rest()) {
    const HoldFibers held;
    const Admission admitted = admit(request, Way::nonblocking);
    if (admitted.communicator == nullptr) return admitted.outcome;
    if (!admitted.communicator->nonblocking.comparing())
      return begin_held(admitted, request, handle);
  }
}

}  // namespace slimpi::call
