// SPDX-License-Identifier: BSD-3-Clause
#include "call/nonblocking.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/exceptions.h"
#include "base/fiber.h"
#include "call/element_type.h"
#include "call/failure.h"
#include "call/persistent.h"
#include "comm/waiter.h"
#include "mpi/handles.h"

namespace slimpi::call {

namespace {

void release(Sum* sum) {
  if (--sum->holders == 0) delete sum;
}

// Completed by the intercepted function that this thread is in, and failed; raised by it.
thread_local Sum* t_failed = nullptr;
thread_local int t_completing = 0;  // such functions that this thread is in

int raise_failure(Sum& sum) {
  // The communicator may have been freed since.
  const bool known = sum.runtime.find_made(sum.comm) == &sum.communicator;
  const mpi::Comm comm = known ? sum.comm : mpi::abi.comm_world;
  if (sum.failure == Status::ok)
    return programs_code([&] {
      sum.runtime.api.Comm_call_errhandler(comm, sum.code);
      return sum.code;
    });
  (void)fail(sum.failure, sum.text);
  return sum.runtime.raise(comm, sum.failure, sum.logs);
}

void enter_fibers();

// MPI calls these for the generalized request of a sum.
int query(void* extra, mpi::MessageStatus* status) {
  Sum& sum = *static_cast<Sum*>(extra);
  const mpi::Api& api = sum.runtime.api;
  api.Status_set_cancelled(status, 0);
  api.Status_set_elements(status, mpi::abi.type_byte, 0);
  // A completion that slimpi does not see cannot raise the error by itself.
  return sum.failed() && t_completing == 0 ? mpi::abi.err_other : mpi::kSuccess;
}

int free_request(void* extra) {
  auto* const sum = static_cast<Sum*>(extra);
  if (sum->failed()) count_fibers(-1, &enter_fibers);
  if (sum->failed() && t_completing != 0) {
    sum->next_failed = std::exchange(t_failed, sum);
    return mpi::kSuccess;
  }
  release(sum);
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
  std::deque<Sum*> sums;
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

  int add(std::unique_ptr<Sum> sum, int (*start)(Sum&));
  void advance() noexcept;
  bool idle(const comm::Communicator* communicator);
  Sum* running() const { return running_; }
  std::recursive_mutex& mutex() { return mutex_; }
  void end_helper();

 private:
  Queue& queue_of(const comm::Communicator& communicator);
  bool step(Queue& queue);
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

void enter_fibers() {
  Queues::all().advance();
}

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

int Queues::add(std::unique_ptr<Sum> sum, int (*start)(Sum&)) {
  const std::lock_guard lock(mutex_);
  if (!helper_.joinable()) helper_ = std::thread(&Queues::help, this);
  Queue& queue = queue_of(sum->communicator);
  queue.sums.push_back(sum.get());
  if (const int code = start(*sum); code != mpi::kSuccess) {
    queue.sums.pop_back();
    return code;
  }
  (void)sum.release();
  std::unique_lock asleep(sleep_);
  count_fibers(1, &enter_fibers);
  asleep.unlock();
  wake_.notify_one();
  return mpi::kSuccess;
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
    Sum* const sum = queue.sums.front();
    if (!std::exchange(queue.begun, true)) queue.fiber.prepare(&run, sum);
    running_ = sum;
    const bool goes_on = queue.fiber.enter();
    running_ = nullptr;
    if (goes_on) return true;
    queue.begun = false;
    queue.sums.pop_front();
    // A failed one counts until its request is completed, so that somebody raises the error.
    if (!sum->failed()) count_fibers(-1, &enter_fibers);
    sum->ended(*sum);
    release(sum);
  }
  return false;
}

// Nothing of the program's is called in the fiber, so nothing of its is thrown here.
void Queues::run(void* argument) {
  Sum& sum = *static_cast<Sum*>(argument);
  const FailureScope own_text;
  Outcome outcome;
  Status status = caught([&] {
    outcome = sum.left ? Outcome::left(*sum.left)
                       : dispatch_together(sum.runtime, sum.communicator, sum.call);
  });
  const auto fail_it = [&] {
    // The others may wait for this rank to meet them.
    if (sum.communicator.connecting()) {
      const FailureScope declining;  // `status` and its text are those of the sum
      sum.communicator.decline();
    }
    sum.code = fail_call(sum.runtime, sum.communicator, status);
  };
  if (outcome.done) sum.code = outcome.code;
  if (status == Status::ok && !outcome.done)
    status = caught([&] { sum.code = call_mpi(sum.call, outcome.reason); });
  if (status != Status::ok) (void)caught(fail_it);
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

void wait_until_idle(const comm::Communicator* communicator) {
  comm::Waiter waiter(comm::Waiter::Poll::mpi);
  while (!Queues::all().idle(communicator)) waiter.rest();
}

}  // namespace

HoldFibers::HoldFibers() {
  Queues::all().mutex().lock();
}

HoldFibers::~HoldFibers() {
  Queues::all().mutex().unlock();
}

int start_sum(std::unique_ptr<Sum> sum, int (*start)(Sum&)) {
  const int code = Queues::all().add(std::move(sum), start);
  enter_fibers();  // its first messages leave
  return code;
}

Outcome begin_in_fiber(Runtime& runtime, comm::Communicator& communicator, const Allreduce& call,
                       std::optional<DescribedTensor> tensor, void* request) {
  auto sum = std::make_unique<Sum>(runtime, communicator, call, std::move(tensor));
  Sum& begun = *sum;
  begun.holders = 2;  // of which one is MPI's request
  begun.program_request = request;
  begun.ended = [](Sum& ended) { ended.runtime.api.Grequest_complete(ended.request); };
  return Outcome::finished(start_sum(std::move(sum), [](Sum& one) {
    const int code =
        one.runtime.api.Grequest_start(&query, &free_request, &cancel, &one, &one.request);
    if (code == mpi::kSuccess) mpi::write(one.program_request, one.request);
    return code;
  }));
}

bool has_sums(const comm::Communicator& communicator) {
  return !Queues::all().idle(&communicator);
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

std::optional<int> postpone_failure(Status status, bool logs) {
  if (!Fiber::inside()) return {};
  Sum& sum = *Queues::all().running();
  sum.failure = status;
  sum.logs = logs;
  copy_failure_text(sum.text);
  return mpi::abi.err_other;
}

int sum_by_mpi(const Allreduce& call) {
  return Queues::all().running()->communicator.exchange().sum_by_mpi(
      call.in, call.out, std::uint64_t(call.count), is_double(call));
}

void progress() {
  (void)let_fibers_run();
}

void wait_until(bool (*poll)(void*), void* argument) {
  comm::Waiter waiter(comm::Waiter::Poll::mpi);
  while (!poll(argument)) waiter.rest();
}

// MPI_Test would complete them.
bool are_complete(int count, const void* requests, int* complete) {
  const mpi::Api& api = Runtime::started()->api;
  for (; *complete < count; ++*complete) {
    int done = 0;
    mpi::MessageStatus status;
    const int code =
        api.Request_get_status(mpi::read_at<mpi::Request>(requests, *complete), &done, &status);
    if (code == mpi::kSuccess && done == 0) return false;
  }
  return true;
}

// Without memory for the handles, errors are raised, but are in no status.
Completing::Completing(int count, const void* requests) {
  ++t_completing;
  (void)caught([&] {
    requests_.reserve(std::size_t(count));
    for (int i = 0; i < count; ++i) requests_.push_back(mpi::read_at<mpi::Request>(requests, i));
  });
}

Completing::~Completing() {
  --t_completing;
}

int Completing::raise(int code, const Completed& completed) {
  const auto index_of = [&](int i) {
    return completed.indices == nullptr ? i : completed.indices[i] - completed.base;
  };
  // The receive of a persistent sum does not tell MPI of its failure.
  for (int i = 0; i < completed.count; ++i)
    if (const int index = index_of(i); index >= 0 && std::size_t(index) < requests_.size())
      if (Sum* const sum = take_failed(requests_[std::size_t(index)]); sum != nullptr) {
        count_fibers(-1, &enter_fibers);
        sum->next_failed = std::exchange(t_failed, sum);
      }
  if (t_failed == nullptr) return code;
  // MPI has no error, so it has not set those of the statuses.
  const bool has_statuses = completed.several && completed.statuses != nullptr &&
                            completed.statuses != mpi::abi.status_ignore;
  for (int i = 0; i < completed.count && has_statuses && code == mpi::kSuccess; ++i)
    mpi::set_error(completed.statuses, i, mpi::kSuccess);
  while (t_failed != nullptr) {
    Sum* const sum = std::exchange(t_failed, t_failed->next_failed);
    const mpi::Request request = sum->request;
    const int raised = raise_failure(*sum);
    release(sum);
    for (int i = 0; i < completed.count && has_statuses; ++i)
      if (const int index = index_of(i); index >= 0 && std::size_t(index) < requests_.size() &&
                                         requests_[std::size_t(index)] == request)
        mpi::set_error(completed.statuses, i, raised);
    if (code == mpi::kSuccess) code = completed.several ? mpi::abi.err_in_status : raised;
  }
  return code;
}

void wait_for_sums_on(mpi::Comm comm) {
  if (!sums_in_flight() || Fiber::inside()) return;
  Runtime* const runtime = Runtime::started();
  if (comm::Communicator* const communicator = runtime->find_made(comm); communicator != nullptr)
    wait_until_idle(communicator);
}

}  // namespace slimpi::call
