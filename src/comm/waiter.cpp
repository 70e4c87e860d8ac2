// SPDX-License-Identifier: BSD-3-Clause
#include "comm/waiter.h"

#include <sched.h>

#include "comm/point_to_point.h"

namespace slimpi::comm {

namespace {

using Clock = std::chrono::steady_clock;

// Polls of a word in memory before the first check and before the first yield: one or two
// microseconds.
constexpr unsigned kMemoryPolls = 64;
// Polls of MPI or a driver between two checks: a fraction of a millisecond.
constexpr unsigned kLibraryPolls = 1024;

// A longer wait yields even if there are enough cores: the count of cores may be wrong, and one
// time slice is short compared with such a wait.
constexpr auto kLongestSpin = std::chrono::milliseconds(10);

enum class CoreEach { unknown, yes, no };
std::atomic<CoreEach> g_core_each{CoreEach::unknown};

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("isb" ::: "memory");
#endif
}

}  // namespace

Waiter::Waiter(Poll poll, PointToPoint* exchange, WaitStage stage, const mpi::Request* request)
    : poll_(poll),
      exchange_(exchange),
      polls_to_check_(poll == Poll::memory ? kMemoryPolls : kLibraryPolls),
      spins_(g_core_each.load(std::memory_order_relaxed) == CoreEach::yes),
      stall_(exchange == nullptr ? nullptr : exchange->exchange(), stage, request) {}

void Waiter::rest() {
  // A driver makes no progress in MPI, and a peer may wait for a message that MPI has not sent yet.
  if (poll_ == Poll::device && exchange_ != nullptr) exchange_->progress();
  if (spins_ || (poll_ == Poll::memory && polls_ < kMemoryPolls))
    relax();
  else
    sched_yield();
}

Status Waiter::check() {
  const auto now = Clock::now();
  // The clock is not read before the first check: most waits end earlier.
  if (polls_ == polls_to_check_) first_check_ = now;
  if (now - first_check_ > kLongestSpin) spins_ = false;
  SLIMPI_TRY(stall_.check(first_check_, now));
  return exchange_ == nullptr ? Status::ok : exchange_->check();
}

void note_cores(bool core_each) {
  if (!core_each) g_core_each = CoreEach::no;
  CoreEach unknown = CoreEach::unknown;
  if (core_each) g_core_each.compare_exchange_strong(unknown, CoreEach::yes);
}

}  // namespace slimpi::comm
