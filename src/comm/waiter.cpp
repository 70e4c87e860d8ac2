// SPDX-License-Identifier: BSD-3-Clause
#include "comm/waiter.h"

#include <sched.h>
#include <time.h>

#include "base/fiber.h"
#include "comm/point_to_point.h"

namespace slimpi::comm {

namespace {

using Clock = std::chrono::steady_clock;

// Polls of a word in memory before the first check and before the first yield: one or two
// microseconds.
constexpr unsigned kMemoryPolls = 64;
// Polls of MPI or a driver between two checks: a fraction of a millisecond.
constexpr unsigned kLibraryPolls = 1024;

// Polls of a nonblocking call, which are as frequent as the program's MPI calls.
constexpr unsigned kFiberPolls = 16;

class Linux final : public WaitPolicy::System {
 public:
  WaitPolicy::Time now() override { return Clock::now().time_since_epoch(); }
  void yield() override { sched_yield(); }
  void sleep(WaitPolicy::Time time) override {
    const timespec length{0, time.count()};
    nanosleep(&length, nullptr);
  }
  void relax() override {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#endif
  }
};

constinit Linux g_system;
// Threads have cores and competitors of their own.
constinit thread_local WaitPolicy t_policy(g_system);
constinit thread_local bool t_without_rest = false;

}  // namespace

Waiter::Waiter(Poll poll, PointToPoint* exchange, WaitStage stage, const mpi::Request* request)
    : poll_(poll),
      exchange_(exchange),
      polls_to_check_(Fiber::inside()        ? kFiberPolls
                      : poll == Poll::memory ? kMemoryPolls
                                             : kLibraryPolls),
      wait_{poll == Poll::memory ? kMemoryPolls : 0},
      stall_(exchange == nullptr ? nullptr : exchange->exchange(), stage, request) {}

bool Waiter::give_way() {
  // A driver makes no progress in MPI, and a peer may wait for a message that MPI has not sent yet.
  if (poll_ == Poll::device && exchange_ != nullptr) exchange_->progress();
  if (let_fibers_run() || t_without_rest) return false;
  if (poll_ != Poll::device) return t_policy.rest(wait_);
  // Some operations of a driver go on only while it is asked, so the thread never sleeps.
  sched_yield();
  return false;
}

void poll_without_rest() {
  t_without_rest = true;
}

Status Waiter::check() {
  const auto now = Clock::now();
  // The clock is not read before the first check: most waits end earlier.
  if (first_check_ == Clock::time_point{}) first_check_ = now;
  SLIMPI_TRY(stall_.check(first_check_, now));
  return exchange_ == nullptr ? Status::ok : exchange_->check();
}

}  // namespace slimpi::comm
