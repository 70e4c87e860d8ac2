// SPDX-License-Identifier: BSD-3-Clause
#include "comm/wait_policy.h"

#include <algorithm>

namespace slimpi::comm {

namespace {

using namespace std::chrono_literals;
using Time = WaitPolicy::Time;

// A loss of the core: shorter than the time slices of Linux, 0.7 to 4 ms, and longer than what
// ranks do between two waits.
constexpr Time kLoss = 500us;
// How long a core counts as contended. The delay doubles if yields lost more than this part of the
// time before.
constexpr Time kFirstDelay = 100ms, kLongestDelay = 10s;
constexpr int kLostPart = 8;
// About what the shortest sleep takes, with Linux's timer slack of 50 us.
constexpr Time kSpin = 100us;
// A sleep lasts this part of the wait so far. The longest one bounds how long a peer waits for
// progress of this thread's MPI.
constexpr Time kShortestSleep = 50us, kLongestSleep = 1ms;
constexpr int kSleptPart = 16;
// Polls between two looks at the clock while spinning.
constexpr unsigned kPollsToClock = 16;

}  // namespace

bool WaitPolicy::rest(Wait& wait) {
  if (wait.polls++ < wait.first_spins) {
    system_.relax();
    return false;
  }
  if (wait.began == Time(0)) wait.began = wait.last = system_.now();
  return contended_ && wait.last < yields_at_ ? spin_or_sleep(wait) : yield(wait);
}

// The time counts from the last look at the clock: a thread also loses its core during a poll.
bool WaitPolicy::yield(Wait& wait) {
  if (contended_) yields_since_ = wait.last;
  contended_ = false;
  system_.yield();
  const Time now = system_.now(), taken = now - wait.last;
  wait.last = now;
  if (taken < kLoss) return false;
  lost_core(taken, now);
  return true;
}

void WaitPolicy::lost_core(Time taken, Time now) {
  const bool soon = taken > (now - yields_since_) / kLostPart;
  delay_ = soon ? std::clamp(2 * delay_, kFirstDelay, kLongestDelay) : kFirstDelay;
  yields_at_ = now + delay_;
  contended_ = true;
}

bool WaitPolicy::spin_or_sleep(Wait& wait) {
  const Time waited = wait.last - wait.began;
  if (waited < kSpin) {
    system_.relax();
    if (wait.polls % kPollsToClock == 0) wait.last = system_.now();
    return false;
  }
  system_.sleep(std::clamp(waited / kSleptPart, kShortestSleep, kLongestSleep));
  wait.last = system_.now();
  return true;
}

}  // namespace slimpi::comm
