// SPDX-License-Identifier: BSD-3-Clause
// Decides how a thread passes the time between two polls of a wait. The number of threads that
// share its core is unknown, because containers and virtual machines on one machine do not know
// each other. So each thread measures how long it loses its core when it gives the core away.
//
// A wait first yields. On a core of its own, a yield is a short system call. If ranks share the
// core, a yield lets another rank run, which soon waits and yields, too. But a thread that computes
// keeps the core for a time slice, whatever its priority. After this loss the policy treats the
// core as contended for a time, the delay. During the delay, a wait for a message sleeps until
// shortly before the message is due, as estimated from its bytes and the rate of earlier messages.
// Any other wait spins for as long as a sleep would take, then sleeps, because a thread that wakes
// up gets its core sooner than one that yielded. After the delay the thread yields again, and if it
// soon loses the core again, the delay grows.
//
// The thread that takes the core may belong to the same program, for instance where a thread of
// PyTorch's hook waits for sums beside the backward pass. The processor time of the process tells
// whether the program computes. Once the program no longer computes, it also waits for the sum, so
// the core is free and the thread yields; it sleeps only before a message that is due much later.
// If another process takes the core, the thread sleeps for a while before it yields again.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace slimpi::comm {

class WaitPolicy {
 public:
  using Time = std::chrono::nanoseconds;

  // The operating system as far as the policy needs it. A test replaces it.
  class System {
   public:
    virtual Time now() = 0;  // on a steady clock
    virtual void yield() = 0;
    virtual void sleep(Time time) = 0;
    virtual void relax() = 0;  // some nanoseconds on the core
    // The processor time that this thread, and all other threads of this process, have used so far.
    virtual Time used_by_thread() = 0;
    virtual Time used_by_program() = 0;

   protected:
    ~System() = default;
  };

  struct Wait {
    unsigned first_spins = 0;  // polls before the first yield
    unsigned polls = 0;
    Time began{}, last{};  // when the clock was read first, and last
    Time due{};            // when the message of the wait is due; 0: unknown
  };

  constexpr explicit WaitPolicy(System& system) : system_(system) {}

  // Passes the time after a poll that found nothing. Returns whether the core was given away for
  // long.
  bool rest(Wait& wait) {
    if (wait.polls++ < wait.first_spins) {
      system_.relax();
      return false;
    }
    if (wait.began == Time(0)) wait.began = wait.last = system_.now();
    if (!contended_ || wait.last >= yields_.at) return yield(wait);
    const bool alone = !program_computes(wait.last) && has_computed_ && wait.last >= alone_.at;
    if (alone && !is_alone_) alone_since_ = wait.last;
    is_alone_ = alone;
    return alone && !is_far(wait) ? yield_alone(wait) : spin_or_sleep(wait);
  }

  bool contended() const { return contended_; }

 private:
  // A yield that takes at least this long is a loss of the core. The limit is shorter than the time
  // slices of Linux, 0.7 to 4 ms, and longer than most work of a rank between two waits.
  static constexpr Time kLoss = std::chrono::microseconds(500);
  // The delay is how long after a loss the core counts as contended. If the loss took more than
  // 1/kLostPart of the time since the thread began to yield, the delay doubles; otherwise it is
  // kFirstDelay, or kAloneDelay if the program was waiting.
  static constexpr Time kFirstDelay = std::chrono::milliseconds(100);
  static constexpr Time kAloneDelay = std::chrono::milliseconds(20);
  static constexpr Time kLongestDelay = std::chrono::seconds(10);
  static constexpr int kLostPart = 8;
  // About the time of the shortest sleep, with Linux's timer slack of 50 us.
  static constexpr Time kSpin = std::chrono::microseconds(100);
  // A sleep lasts 3/4 of the time until the message is due. If the message is late or its time
  // unknown, the sleep lasts 1 / kSleptPart of the time since the message was due or since the wait
  // began. All sleeps are kept within these limits. kLongestSleep is short, because MPI makes no
  // progress for peers during a sleep.
  static constexpr Time kShortestSleep = std::chrono::microseconds(50);
  static constexpr Time kLongestSleep = std::chrono::milliseconds(1);
  static constexpr int kSleptPart = 16;
  // How many polls lie between two looks at the clock while spinning.
  static constexpr unsigned kPollsToClock = 16;

  // The program counts as computing if its threads use at least 1 / kUsedPart of the time that this
  // thread gives away. Spans shorter than kLook are not measured.
  static constexpr Time kLook = std::chrono::microseconds(50);
  static constexpr int kUsedPart = 4;

  // While the program waits, a thread sleeps before a message that is due more than kFar later. It
  // first yields for kMeasured, because a rate that was measured with sleeps may be too low.
  static constexpr Time kFar = std::chrono::microseconds(100);
  static constexpr Time kMeasured = std::chrono::microseconds(500);

  bool is_far(const Wait& wait) const {
    return wait.due > wait.last + kFar && wait.last - alone_since_ >= kMeasured;
  }

  // Yields until a loss, and again after the delay.
  struct Yields {
    void lost(Time now, Time taken, Time first) {
      const bool soon = taken > tried / kLostPart;
      delay = soon ? std::clamp(2 * delay, first, kLongestDelay) : first;
      at = now + delay;
      tried = Time(0);
    }
    // `tried` is how long the thread has yielded since the last loss. After a loss, it yields again
    // at the time `at`, which is `delay` after the loss.
    Time tried{}, at{}, delay{};
  };

  // Yields, and returns how long the thread was away. This counts from the last look at the clock,
  // because a thread also loses its core during a poll.
  Time give_away(Wait& wait) {
    system_.yield();
    const Time before = std::exchange(wait.last, system_.now());
    return wait.last - before;
  }

  bool yield(Wait& wait) {
    if (std::exchange(contended_, false)) yields_since_ = wait.last;
    const Time taken = give_away(wait);
    if (taken < kLoss) return false;
    yields_.tried = wait.last - yields_since_;
    yields_.lost(wait.last, taken, kFirstDelay);
    return contended_ = true;
  }

  // Yields while the program waits.
  bool yield_alone(Wait& wait) {
    const Time taken = give_away(wait);
    alone_.tried += taken;
    if (taken < kLoss) return false;
    if (!program_computes(wait.last)) alone_.lost(wait.last, taken, kAloneDelay);
    return true;
  }

  bool spin_or_sleep(Wait& wait) {
    const bool known = wait.due != Time(0);
    const Time waited = wait.last - (known ? wait.due : wait.began);
    if (!known && waited < kSpin) {
      system_.relax();
      if (wait.polls % kPollsToClock == 0) wait.last = system_.now();
      return false;
    }
    // Sleep for only part of the time, because it is an estimate and a sleep lasts longer than
    // requested.
    const Time time = waited < Time(0) ? -waited * 3 / 4 : waited / kSleptPart;
    system_.sleep(std::clamp(time, kShortestSleep, kLongestSleep));
    wait.last = system_.now();
    return true;
  }

  // Returns whether the program's threads have computed in the time that this thread has given away
  // since the last measurement. The first measurement finds nothing.
  bool program_computes(Time now) {
    if (now - looked_ < kLook) return computes_;
    looked_ = now;
    const Time own = system_.used_by_thread();
    const Time given = now - measured_ - (own - own_);
    if (given < kLook) return computes_;
    const Time program = system_.used_by_program();
    computes_ = measured_ != Time(0) && program - program_ >= given / kUsedPart;
    has_computed_ |= computes_;
    measured_ = now;
    own_ = own;
    program_ = program;
    return computes_;
  }

  System& system_;
  bool contended_ = false, is_alone_ = false;
  Yields yields_, alone_;  // in general, and while the program waits
  Time yields_since_{}, alone_since_{};
  // Used by program_computes(). computes_ is the result of the last measurement. measured_ is the
  // time of that measurement (0: never), own_ and program_ are the processor times used until then,
  // and looked_ is when another measurement was last tried.
  bool computes_ = false, has_computed_ = false;
  Time measured_{}, looked_{}, own_{}, program_{};
};

// Estimates when the next message of an exchange should arrive, from the shortest time per byte
// that was measured. Each longer measurement lengthens the estimate by an eighth at most, and never
// beyond the measurement. If the estimate is too short, waits only sleep more often.
class ArrivalRate {
 public:
  using Time = WaitPolicy::Time;

  // Returns when a message of `bytes` should arrive if it follows the last one closely, but not a
  // time before `now`.
  Time due(Time now, std::size_t bytes) const {
    constexpr double kMost = 1e9;  // ns
    const double after = std::min(for_byte_ * double(since_ + bytes), kMost);
    return std::max(now, last_ + Time(std::int64_t(after)));
  }

  // Counts a message that no thread had to wait for.
  void found(std::size_t bytes) { since_ += bytes; }

  // Counts a message that a thread has waited for until `now`.
  void arrived(Time now, std::size_t bytes) {
    since_ += bytes;
    if (last_ != Time(0) && since_ != 0) {
      const double seen = double((now - last_).count()) / double(since_);
      for_byte_ = for_byte_ == 0 ? seen : std::min(seen, for_byte_ * 1.125);
    }
    last_ = now;
    since_ = 0;
  }

 private:
  double for_byte_ = 0;    // ns; 0: unknown
  Time last_{};            // when arrived() was last called
  std::size_t since_ = 0;  // the bytes of found() after that
};

}  // namespace slimpi::comm
