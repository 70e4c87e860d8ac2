// SPDX-License-Identifier: BSD-3-Clause
#include "call/nonblocking.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/exceptions.h"
#include "base/fiber.h"
#include "call/admission.h"
#include "call/element_type.h"
#include "call/estimate.h"
#include "comm/waiter.h"
#include "mpi/internal_comm.h"

namespace slimpi::call {

namespace {

// What MPI keeps of a nonblocking sum until its generalized request is freed. No message to this
// process stands for it: before the ranks have met there is no communicator for one but a
// communicator of this process alone, where MPICH's messages are not safe among threads.
struct Completion {
  explicit Completion(const mpi::Api& its_api) : api(its_api) {}
  const mpi::Api& api;
  mpi::Request request = mpi::abi.request_null;
  bool failed = false;
  std::atomic<int> holders{2};  // MPI, which may free it before the sum has ended, and the sum
};

void release(Completion* completion) {
  if (--completion->holders == 0) delete completion;
}

int query(void* extra, mpi::MessageStatus* status) {
  const Completion& completion = *static_cast<Completion*>(extra);
  completion.api.Status_set_cancelled(status, 0);
  completion.api.Status_set_elements(status, mpi::abi.type_byte, 0);
  // A completion that slimpi does not see cannot raise the error by itself.
  if (!completion.failed || is_completing()) return mpi::kSuccess;
  forget_failure(completion.request);
  return mpi::abi.err_other;
}

int free_request(void* extra) {
  release(static_cast<Completion*>(extra));
  return mpi::kSuccess;
}

// The standard has no cancellation of collectives.
int cancel(void*, int complete) {
  return complete != 0 ? mpi::kSuccess : mpi::abi.err_other;
}

// How long nobody enters the fibers before the helper thread does, unless it always does.
constexpr auto kLeftAlone = std::chrono::milliseconds(1);
// Between two polls of the helper thread, each of some microseconds. It may not yield instead: a
// program that computes would lose half of its core.
constexpr auto kBetweenPolls = std::chrono::microseconds(100);

std::atomic<std::uint64_t> g_entries{0};  // times that the program's threads entered the fibers
thread_local bool t_helps = false;

// The sums of one communicator that are not complete. The first one runs in the fiber.
struct Queue {
  const comm::Communicator* communicator = nullptr;
  std::deque<std::unique_ptr<Sum>> sums;
  bool begun = false;
  Fiber fiber;
};

class Queues {
 public:
  // Never destroyed: exit handlers may still call MPI.
  static Queues& all() {
    static auto* const queues = new Queues;
    return *queues;
  }

  void add(std::unique_ptr<Sum> sum);
  void advance() noexcept;
  bool idle(const comm::Communicator* communicator);
  bool has_any_of(std::span<const mpi::Request> requests);
  std::optional<int> refuse_to_cancel(mpi::Request request);
  void count_in_order(comm::Communicator& communicator);
  void drop(mpi::Request request);
  Sum* running() const { return running_; }
  std::recursive_mutex& mutex() { return mutex_; }
  void end_helper();

 private:
  Queue& queue_of(const comm::Communicator& communicator);
  bool step(Queue& queue);
  void complete(std::unique_ptr<Sum> sum);
  static void run(void* sum);
  void help();

  std::recursive_mutex mutex_;  // whoever has it enters fibers; guards all below
  std::vector<std::unique_ptr<Queue>> busy_, free_;
  Sum* running_ = nullptr;  // its fiber is entered
  std::thread helper_;
  std::mutex sleep_;  // of the helper thread; whoever gives it a reason to wake up takes it
  std::condition_variable wake_;
  std::atomic<bool> ends_{false};  // the helper thread
};

Queue& Queues::queue_of(const comm::Communicator& communicator) {
  for (const auto& queue : busy_)
    if (queue->communicator == &communicator) return *queue;
  busy_.reserve(busy_.size() + 1);
  free_.reserve(busy_.size() + free_.size() + 1);  // step() moves it there
  auto queue = free_.empty() ? std::make_unique<Queue>() : std::move(free_.back());
  if (!free_.empty()) free_.pop_back();
  queue->communicator = &communicator;
  busy_.push_back(std::move(queue));
  return *busy_.back();
}

void Queues::add(std::unique_ptr<Sum> sum) {
  const std::lock_guard lock(mutex_);
  if (!helper_.joinable()) helper_ = std::thread(&Queues::help, this);
  queue_of(sum->communicator).sums.push_back(std::move(sum));
  std::unique_lock asleep(sleep_);
  count_fibers(1, &enter_fibers);
  asleep.unlock();
  wake_.notify_one();
}

void Queues::count_in_order(comm::Communicator& communicator) {
  const std::lock_guard lock(mutex_);
  for (const auto& queue : busy_)
    if (queue->communicator == &communicator) {
      ++queue->sums.back()->counted_later;
      return;
    }
  communicator.states.count_call();
}

// Another thread that enters fibers does this one's, too.
void Queues::advance() noexcept {
  if (!t_helps) g_entries.fetch_add(1, std::memory_order_relaxed);
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (std::size_t i = 0; i < busy_.size();) {
    if (step(*busy_[i])) {
      ++i;
      continue;
    }
    free_.push_back(std::move(busy_[i]));
    busy_.erase(busy_.begin() + std::ptrdiff_t(i));
  }
}

// Lets the sums of a queue go on until one has to wait. False: all are complete.
bool Queues::step(Queue& queue) {
  while (!queue.sums.empty()) {
    Sum& sum = *queue.sums.front();
    if (!std::exchange(queue.begun, true)) queue.fiber.prepare(&run, &sum);
    running_ = &sum;
    const bool goes_on = queue.fiber.enter();
    running_ = nullptr;
    if (goes_on) return true;
    queue.begun = false;
    for (; sum.counted_later > 0; --sum.counted_later) sum.communicator.states.count_call();
    std::unique_ptr<Sum> ended = std::move(queue.sums.front());
    queue.sums.pop_front();
    complete(std::move(ended));
  }
  return false;
}

// A failed sum counts as one in flight until the program has completed its request and got the
// error. Others count until their request is complete: MPI_Waitall of MPICH takes no pending
// generalized one.
void Queues::complete(std::unique_ptr<Sum> sum) {
  void (*const end)(void*, bool) = sum->end;
  void* const argument = sum->end_argument;
  const bool failed = sum->failed();
  if (failed && !sum->dropped) keep_failure(std::move(sum));
  end(argument, failed);
  if (sum != nullptr) count_fibers(-1, &enter_fibers);
}

// Nothing of the program's is called in the fiber, so nothing of its is thrown here.
void Queues::run(void* argument) {
  Sum& sum = *static_cast<Sum*>(argument);
  const FailureScope own_text;
  Outcome outcome;
  Status status = caught([&] {
    if (sum.bypass)
      outcome = Outcome::bypassed(*sum.bypass);
    else if (sum.prepared != nullptr)
      outcome = call::run(sum.runtime, sum.communicator, *sum.prepared, sum.call);
    else
      outcome = decide_and_run(sum.runtime, sum.communicator, sum.call);
  });
  if (outcome.done) sum.code = outcome.code;
  if (status == Status::ok && !outcome.done)
    status = caught([&] { sum.code = call_mpi(sum.call, outcome.reason); });
  if (status != Status::ok)
    (void)caught([&] { sum.code = fail_call(sum.runtime, sum.communicator, status); });
}

// Lets the sums go on while the program's threads do not: they compute, or block in MPI, where
// other ranks may wait for this one's part.
void Queues::help() {
  sigset_t every;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, nullptr);
  pthread_setname_np(pthread_self(), "slimpi");
  t_helps = true;
  const bool always = Runtime::started()->config.progress == Progress::thread;
  for (;;) {
    std::unique_lock lock(sleep_);
    wake_.wait(lock, [&] { return ends_ || sums_in_flight(); });
    if (ends_) return;
    lock.unlock();
    const std::uint64_t seen = g_entries.load(std::memory_order_relaxed);
    if (!always) std::this_thread::sleep_for(kLeftAlone);
    while (sums_in_flight() && !ends_ &&
           (always || g_entries.load(std::memory_order_relaxed) == seen)) {
      advance();
      std::this_thread::sleep_for(kBetweenPolls);
    }
  }
}

void Queues::end_helper() {
  std::unique_lock lock(mutex_);
  std::thread ending = std::move(helper_);
  lock.unlock();
  if (!ending.joinable()) return;
  std::unique_lock asleep(sleep_);
  ends_ = true;
  asleep.unlock();
  wake_.notify_one();
  ending.join();
  ends_ = false;
}

bool Queues::idle(const comm::Communicator* communicator) {
  const std::lock_guard lock(mutex_);
  return communicator == nullptr ? busy_.empty()
                                 : std::none_of(busy_.begin(), busy_.end(), [&](const auto& queue) {
                                     return queue->communicator == communicator;
                                   });
}

bool Queues::has_any_of(std::span<const mpi::Request> requests) {
  const std::lock_guard lock(mutex_);
  for (const auto& queue : busy_)
    for (const auto& sum : queue->sums)
      if (std::find(requests.begin(), requests.end(), sum->request) != requests.end()) return true;
  return false;
}

// MPI would cancel the receive that stands for the sum.
std::optional<int> Queues::refuse_to_cancel(mpi::Request request) {
  std::unique_lock lock(mutex_);
  for (const auto& queue : busy_)
    for (const auto& sum : queue->sums)
      if (sum->request == request) {
        Runtime& runtime = sum->runtime;
        const mpi::Comm comm = comm_for_errors(runtime, sum->comm, sum->of_comm);
        lock.unlock();
        return runtime.raise(comm,
                             fail(Status::unsupported, "MPI_Cancel: a sum cannot be cancelled"));
      }
  return {};
}

void Queues::drop(mpi::Request request) {
  const std::lock_guard lock(mutex_);
  for (const auto& queue : busy_)
    for (const auto& sum : queue->sums)
      if (sum->request == request) sum->dropped = true;
}

void wait_until_idle(const comm::Communicator* communicator) {
  comm::Waiter waiter(comm::Waiter::Poll::mpi);
  while (!Queues::all().idle(communicator)) waiter.rest();
}

}  // namespace

void enter_fibers() {
  Queues::all().advance();
}

HoldFibers::HoldFibers() {
  Queues::all().mutex().lock();
}

HoldFibers::~HoldFibers() {
  Queues::all().mutex().unlock();
}

void start_sum(std::unique_ptr<Sum> sum) {
  Queues::all().add(std::move(sum));
  enter_fibers();  // its first messages leave
}

void count_in_order(comm::Communicator& communicator) {
  Queues::all().count_in_order(communicator);
}

bool are_in_flight(std::span<const mpi::Request> requests) {
  return Queues::all().has_any_of(requests);
}

namespace {

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

// Whether the ranks can take nonblocking sums of the communicator; the same on all ranks at the
// same call. The first one makes the ranks meet.
bool takes_nonblocking(Runtime& runtime, comm::Communicator& communicator) {
  if (communicator.unusable()) return false;
  // In its fiber the first one finds out more, at different times on the ranks.
  if (communicator.has_begun()) return true;
  if (communicator.connected()) return communicator.threaded();
  if (has_threads(runtime) && mpi::can_make_internal_in_fiber()) return true;
  communicator.refuse_to_meet();
  return false;
}

Outcome begin_in_fiber(Runtime& runtime, comm::Communicator& communicator, const Allreduce& call,
                       std::optional<DescribedTensor> tensor, void* request) {
  auto sum = std::make_unique<Sum>(runtime, communicator, call, std::move(tensor));
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

// With HoldFibers, while the ranks are not comparing how many sums each has begun.
Outcome begin_held(const Admission& admitted, const Allreduce& request,
                   std::optional<DescribedTensor> tensor, void* handle) {
  Runtime& runtime = *admitted.runtime;
  comm::Communicator& communicator = *admitted.communicator;
  if (admitted.untyped) {
    if (!communicator.connected()) communicator.refuse_type(type_of(request));
    return admitted.outcome;
  }
  if (CallEstimate::running() != nullptr) return estimate_begun(runtime, communicator, request);
  if (!takes_nonblocking(runtime, communicator))
    return bypass(runtime, BypassReason::nonblocking, communicator, request);
  if (communicator.decides(communicator.begin_nonblocking())) {
    const policy::Decision& decision =
        communicator.attachment<PreparedCalls>().find(request).decision;
    if (!decision.take) {
      if (decision.reason != BypassReason::small) count_in_order(communicator);
      return bypass(runtime, decision.reason, communicator, request);
    }
  }
  return begin_in_fiber(runtime, communicator, request, std::move(tensor), handle);
}

}  // namespace

Outcome begin(const Allreduce& request, void* handle) {
  // A hook's own calls, or those of callbacks that MPI makes meanwhile.
  if (Fiber::inside()) return {};
  std::optional<DescribedTensor> tensor = take_description(request);
  for (comm::Waiter waiter(comm::Waiter::Poll::mpi);; waiter.rest()) {
    const HoldFibers held;
    const Admission admitted = admit(request, Way::nonblocking);
    if (admitted.communicator == nullptr) return admitted.outcome;
    if (admitted.untyped || !admitted.communicator->comparing_sums())
      return begin_held(admitted, request, std::move(tensor), handle);
  }
}

void estimate_nonblocking(const Allreduce& call) {
  if (CallEstimate* const estimate = CallEstimate::running(); estimate != nullptr)
    estimate->nonblocking(call);
}

void wait_for_sums(const comm::Communicator& communicator) {
  if (sums_in_flight() && !Fiber::inside()) wait_until_idle(&communicator);
}

void wait_for_all_sums() {
  if (sums_in_flight() && !Fiber::inside()) wait_until_idle(nullptr);
}

void end_helper() {
  Queues::all().end_helper();
}

Sum* running_sum() {
  return Fiber::inside() ? Queues::all().running() : nullptr;
}

int postpone_failure(Sum& sum, Status status, bool logs) {
  sum.failure = status;
  sum.logs = logs;
  copy_failure_text(sum.text);
  return mpi::abi.err_other;
}

int sum_by_mpi(const Allreduce& call) {
  return Queues::all().running()->communicator.exchange().sum_by_mpi(
      call.in, call.out, std::uint64_t(call.count), call.datatype, row_of(type_of(call)).bytes);
}

void progress() {
  (void)let_fibers_run();
}

void wait_until(bool (*poll)(void*), void* argument) {
  comm::Waiter waiter(comm::Waiter::Poll::mpi);
  while (!poll(argument)) waiter.rest();
}

int refuse_to_cancel(const void* request) {
  if (!sums_in_flight()) return mpi::kSuccess;
  return Queues::all().refuse_to_cancel(mpi::read<mpi::Request>(request)).value_or(mpi::kSuccess);
}

void drop_request(const void* handle) {
  if (!sums_in_flight()) return;
  const auto request = mpi::read<mpi::Request>(handle);
  Queues::all().drop(request);
  forget_failure(request);
}

void wait_for_sums_on(mpi::Comm comm) {
  if (!sums_in_flight() || Fiber::inside()) return;
  Runtime* const runtime = Runtime::started();
  if (comm::Communicator* const communicator = runtime->find_made(comm); communicator != nullptr)
    wait_until_idle(communicator);
}

void finish_on(mpi::Comm comm) {
  Runtime* const runtime = Runtime::started();
  if (runtime == nullptr || Fiber::inside()) return;
  comm::Communicator* const communicator = runtime->find_made(comm);
  if (communicator == nullptr) return;
  wait_for_sums(*communicator);
  communicator->finish_refusals();
}

}  // namespace slimpi::call
