// SPDX-License-Identifier: BSD-3-Clause
#include "call/nonblocking.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/exceptions.h"
#include "base/fiber.h"
#include "call/element_type.h"
#include "comm/waiter.h"

namespace slimpi::call {

namespace {

// MPI calls these for the generalized request of a sum.
int query(void* extra, mpi::MessageStatus* status) {
  Sum& sum = *static_cast<Sum*>(extra);
  const mpi::Api& api = sum.runtime.api;
  api.Status_set_cancelled(status, 0);
  api.Status_set_elements(status, mpi::abi.type_byte, 0);
  // A completion that slimpi does not see cannot raise the error by itself.
  if (!sum.failed() || is_completing()) return mpi::kSuccess;
  forget_failure(sum.request);
  return mpi::abi.err_other;
}

int free_request(void* extra) {
  release(static_cast<Sum*>(extra));
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
  void drop(mpi::Request request);
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
    // Counts until its request is complete: MPI_Waitall of MPICH takes no pending generalized one.
    // A failed one counts until the program has completed its request and got the error.
    sum->ended(*sum);
    if (!sum->failed()) count_fibers(-1, &enter_fibers);
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
    outcome = sum.bypass ? Outcome::bypassed(*sum.bypass)
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

void Queues::drop(mpi::Request request) {
  const std::lock_guard lock(mutex_);
  for (const auto& queue : busy_)
    for (Sum* const sum : queue->sums)
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
  begun.ended = [](Sum& ended) {
    keep_failure(ended);
    ended.runtime.api.Grequest_complete(ended.request);
  };
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
      call.in, call.out, std::uint64_t(call.count), call.datatype, row_of(type_of(call)).bytes);
}

void progress() {
  (void)let_fibers_run();
}

void wait_until(bool (*poll)(void*), void* argument) {
  comm::Waiter waiter(comm::Waiter::Poll::mpi);
  while (!poll(argument)) waiter.rest();
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
