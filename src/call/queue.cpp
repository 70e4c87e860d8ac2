// SPDX-License-Identifier: BSD-3-Clause
#include "call/queue.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/exceptions.h"
#include "base/fiber.h"
#include "base/thread.h"
#include "call/admission.h"
#include "call/element_type.h"
#include "call/entry.h"
#include "call/held_sum.h"
#include "call/sum.h"
#include "comm/waiter.h"
#include "device/device.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {

// How long the program's threads may leave the fibers alone before the helper thread enters them.
// With SLIMPI_PROGRESS=thread the helper thread enters them without this delay.
constexpr auto kLeftAlone = std::chrono::milliseconds(1);
// How long the helper thread sleeps between two polls that find nothing; a poll takes some
// microseconds. If the thread only yielded, a program that computes would lose half of its core.
constexpr auto kBetweenPolls = std::chrono::microseconds(100);
// The longest such sleep. If the next message is due later, the thread sleeps for 3/4 of the time
// until then, up to this limit.
constexpr auto kLongestBetweenPolls = std::chrono::milliseconds(1);
// How often each sum polls when a thread enters the fibers. Open MPI 5 needs two polls to complete
// most messages that have arrived: with one poll, a program that calls MPI_Test once in a
// millisecond gets half the rate of the link.
constexpr int kPollsAnEntry = 2;

std::atomic<std::uint64_t> g_entries{0};    // how often the program's threads entered fibers
thread_local bool t_helps = false;          // this thread is the helper thread
thread_local HeldSum* t_running = nullptr;  // see running_sum()

// How many queues are kept for later sums, with the stacks of their fibers.
constexpr std::size_t kSpareQueues = 8;

// The sums of one communicator that are not complete. The first of them runs in the fiber.
struct Queue {
  const comm::Communicator* communicator = nullptr;
  std::deque<std::shared_ptr<HeldSum>> sums;
  bool begun = false;
  Fiber fiber;
};

struct Queues {
  std::recursive_mutex mutex;  // held while a thread runs a fiber; guards all below
  std::vector<std::unique_ptr<Queue>> busy, free;
  pthread_t helper{};
  bool has_helper = false;
  std::mutex sleep;  // the mutex of `wake`, where the helper sleeps
  std::condition_variable wake;
  std::atomic<bool> ends{false};  // tells the helper thread to end
};

// Returns the only object. It is never destroyed, because exit handlers may still call MPI.
Queues& queues() {
  static auto* const made = new Queues;
  return *made;
}

// Returns the queue of a communicator, making one if there is none. The caller holds the mutex.
Queue& queue_of(const comm::Communicator& communicator) {
  auto& busy = queues().busy;
  auto& free = queues().free;
  for (const auto& queue : busy)
    if (queue->communicator == &communicator) return *queue;
  busy.reserve(busy.size() + 1);
  free.reserve(kSpareQueues);  // for enter_fibers(), which moves queues there
  auto queue = free.empty() ? std::make_unique<Queue>() : std::move(free.back());
  if (!free.empty()) free.pop_back();
  queue->communicator = &communicator;
  busy.push_back(std::move(queue));
  return *busy.back();
}

// Ends a sum as failed. Other ranks may wait for this one; without an internal communicator no
// message can tell them, so the job ends.
void fail_sum(HeldSum& sum, Status status) {
  if (!sum.communicator.connected()) end_for(sum.comm_for_errors(), status);
  (void)caught([&] { sum.failure.code = fail_call(sum.runtime, sum.communicator, status); });
}

// Runs a sum in its fiber. No exception of the program is thrown here, because the fiber calls no
// code of the program.
void run_in_fiber(void* argument) {
  HeldSum& sum = *static_cast<HeldSum*>(argument);
  const FailureScope own_text;
  Outcome outcome;
  Status status = caught([&] {
    if (sum.bypass)
      outcome = Outcome::bypassed(*sum.bypass);
    else if (sum.decision != nullptr)
      outcome = run(sum.runtime, sum.communicator, *sum.decision, sum.request);
    else
      outcome = decide_and_run(sum.runtime, sum.communicator, sum.request);
  });
  if (outcome.done) sum.failure.code = outcome.code;
  if (status == Status::ok && !outcome.done)
    status = caught([&] { sum.failure.code = call_mpi(sum.request, outcome.reason); });
  if (status != Status::ok) fail_sum(sum, status);
}

// Returns the stack that a sum needs: a large one if functions of a hook or of a GPU's driver run
// in the fiber.
Fiber::Stack stack_for(const HeldSum& sum) {
  const Config& config = sum.communicator.config();
  return device::others() || config.rules || config.algorithm.starts_with("hook:")
             ? Fiber::Stack::large
             : Fiber::Stack::small;
}

// Begins the first sum of a queue, or continues it. Returns false if the sum has ended.
bool step_first(Queue& queue) {
  HeldSum& sum = *queue.sums.front();
  if (!queue.begun) {
    const FailureScope own_text;
    const Status status = caught([&] { queue.fiber.prepare(&run_in_fiber, &sum, stack_for(sum)); });
    if (status != Status::ok) fail_sum(sum, status);
    queue.begun = status == Status::ok;
  }
  return queue.begun && queue.fiber.enter();
}

// Runs the sums of a queue until one of them has to wait. Returns false if all sums of the queue
// are complete.
bool step(Queue& queue) {
  while (!queue.sums.empty()) {
    HeldSum& sum = *queue.sums.front();
    if (!sum.accepted) return true;
    t_running = &sum;
    const bool waits = step_first(queue);
    t_running = nullptr;
    if (waits) return true;
    queue.begun = false;
    for (; sum.counted_later > 0; --sum.counted_later) sum.communicator.states.count_call();
    const std::shared_ptr<HeldSum> ended = std::move(queue.sums.front());
    queue.sums.pop_front();
    ended->end();
  }
  return false;
}

// Returns how long the helper thread sleeps before its next poll.
comm::WaitPolicy::Time time_to_poll() {
  const auto due = comm::fibers_due();
  if (due == comm::WaitPolicy::Time(0)) return kBetweenPolls;
  return std::clamp<comm::WaitPolicy::Time>((due - comm::now()) * 3 / 4, kBetweenPolls,
                                            kLongestBetweenPolls);
}

// The loop of the helper thread. Runs the sums while the program's threads compute or block in MPI,
// because other ranks may be waiting for this rank.
void help() {
  pthread_setname_np(pthread_self(), "slimpi");
  prctl(PR_SET_TIMERSLACK, 1000UL);  // ns; the default lengthens each sleep by 50 us
  t_helps = true;
  std::uint64_t moved = 0;
  const std::atomic<bool>& ends = queues().ends;
  const bool always = Runtime::started()->config.progress == Progress::thread;
  for (;;) {
    std::unique_lock lock(queues().sleep);
    queues().wake.wait(lock, [&] { return ends || sums_in_flight(); });
    if (ends) return;
    lock.unlock();
    const std::uint64_t seen = g_entries.load(std::memory_order_relaxed);
    if (!always) std::this_thread::sleep_for(kLeftAlone);
    while (sums_in_flight() && !ends &&
           (always || g_entries.load(std::memory_order_relaxed) == seen)) {
      enter_fibers();
      if (comm::fibers_moved(&moved)) continue;
      // A sum that waits for a blocking function needs no poll until that function returns.
      if (const int blocking = g_blocking - g_abandoned; blocking > 0 && g_fibers <= blocking)
        sleep_beside_blocking(kLongestBetweenPolls);
      else
        std::this_thread::sleep_for(time_to_poll());
    }
  }
}

// Waits until no sum of the communicator is left or, if `communicator` is null, no sum at all.
void wait_until_idle(const comm::Communicator* communicator) {
  const auto is_idle = [&] {
    const std::lock_guard lock(queues().mutex);
    return std::none_of(queues().busy.begin(), queues().busy.end(), [&](const auto& queue) {
      return (communicator == nullptr || queue->communicator == communicator) &&
             std::any_of(queue->sums.begin(), queue->sums.end(),
                         [](const auto& sum) { return sum->accepted; });
    });
  };
  if (!sums_in_flight() || Fiber::inside()) return;
  comm::Waiter waiter(comm::Waiter::Poll::mpi);
  while (!is_idle()) waiter.rest();
}

}  // namespace

// Does nothing if another thread is in the fibers, because that thread serves all sums. Also does
// nothing if this thread is already running a sum, whose fiber cannot be entered again: a hook in
// this fiber may start a persistent sum, and fail_sum() may wait.
void enter_fibers() noexcept {
  if (t_running != nullptr) return;
  if (!t_helps) g_entries.fetch_add(1, std::memory_order_relaxed);
  const std::unique_lock lock(queues().mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  auto& busy = queues().busy;
  comm::forget_fibers_due();
  for (int poll = 0; poll < kPollsAnEntry; ++poll)
    for (std::size_t i = 0; i < busy.size();) {
      if (step(*busy[i])) {
        ++i;
        continue;
      }
      if (queues().free.size() < kSpareQueues) queues().free.push_back(std::move(busy[i]));
      busy.erase(busy.begin() + std::ptrdiff_t(i));
    }
}

HoldFibers::HoldFibers() : locks_(!Fiber::inside()) {
  if (locks_) queues().mutex.lock();
}

HoldFibers::~HoldFibers() {
  if (locks_) queues().mutex.unlock();
}

bool add_sum(std::shared_ptr<HeldSum> sum) {
  const HoldFibers held;
  // A sum that was queued and neither accepted nor removed is left over from a start that the
  // program's error handler has left, and can begin now.
  if (sum->runs()) return !sum->accepted;
  // Without a helper thread, sums make progress only inside the program's MPI calls.
  Queues& all = queues();
  if (!all.has_helper) all.has_helper = start_thread(&all.helper, &help);
  if (!all.has_helper)
    log_once(LogLevel::warn, "no thread can be made that lets nonblocking sums go on meanwhile");
  HeldSum& added = *sum;
  queue_of(sum->communicator).sums.push_back(std::move(sum));
  added.begin();
  return true;
}

void begin_sum(HeldSum& sum) noexcept {
  const HoldFibers held;
  sum.accept();
  {
    const std::lock_guard asleep(queues().sleep);
    sum.set_in_flight(true);
  }
  queues().wake.notify_one();
  // The first messages leave now. The first sum of a communicator also begins a collective of MPI
  // on the program's communicator here, and must not leave that to another thread, because the
  // program may begin its own next collective at once.
  enter_fibers();
}

void remove_sum(HeldSum& sum) noexcept {
  const HoldFibers held;
  if (sum.accepted) return;
  sum.take_back();
  for (const auto& queue : queues().busy)
    std::erase_if(queue->sums, [&](const auto& one) { return one.get() == &sum; });
}

void count_in_order(comm::Communicator& communicator) {
  const HoldFibers held;
  for (const auto& queue : queues().busy)
    if (queue->communicator == &communicator && !queue->sums.empty()) {
      ++queue->sums.back()->counted_later;
      return;
    }
  communicator.states.count_call();
}

void wait_for_sums(const comm::Communicator& communicator) {
  wait_until_idle(&communicator);
}

void wait_for_all_sums() {
  wait_until_idle(nullptr);
}

void end_helper() {
  std::unique_lock lock(queues().mutex);
  const bool has_helper = std::exchange(queues().has_helper, false);
  const pthread_t ending = queues().helper;
  lock.unlock();
  if (!has_helper) return;
  std::unique_lock asleep(queues().sleep);
  queues().ends = true;
  asleep.unlock();
  queues().wake.notify_one();
  pthread_join(ending, nullptr);
  queues().ends = false;
}

// This function is not inlined, because a fiber may be left before the call and continued in
// another thread, where t_running has another address.
[[gnu::noinline]] HeldSum* running_sum() {
  return t_running;
}

int postpone_failure(HeldSum& sum, Status status, Logging logging) {
  sum.failure.status = status;
  sum.failure.logging = logging;
  copy_failure_text(sum.failure.text);
  return mpi::abi.err_other;
}

int sum_by_mpi(const Request& request, int (*begin)(const Request& request, mpi::Request* handle)) {
  Request own = request;
  own.fortran = true;  // the PMPI_ name, so no tool sees the communicator
  return running_sum()->communicator.exchange().make_by_mpi(
      [&](mpi::Comm on, mpi::Request* handle) {
        own.comm = on;
        int code = mpi::kSuccess;
        on_threads_stack([&] { code = begin(own, handle); });
        return code;
      });
}

}  // namespace slimpi::call
