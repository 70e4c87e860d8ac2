// SPDX-License-Identifier: BSD-3-Clause
// What a thread does between two polls of a wait. Who shares its core cannot be counted: containers
// and virtual machines on one machine do not know each other. So each thread measures what giving
// its core away costs.
//
// A wait yields at first. On a core of its own a yield is a short system call. On a core that ranks
// share, it lets the rank run that the others wait for, which soon waits, too. But a thread that
// computes keeps the core for a time slice, whatever its priority. After that loss the core
// counts as contended. Then a wait spins for as long as a sleep would take, and sleeps after that:
// a thread that wakes up gets its core sooner than one that yielded. After a while the thread
// yields again. The while gets longer each time that yields soon lose the core again.
#pragma once
#include <chrono>

namespace slimpi::comm {

class WaitPolicy {
 public:
  using Time = std::chrono::nanoseconds;

  // What the policy asks of the operating system. A test answers in its place.
  class System {
   public:
    virtual Time now() = 0;  // on a steady clock
    virtual void yield() = 0;
    virtual void sleep(Time time) = 0;
    virtual void relax() = 0;  // some nanoseconds on the core

   protected:
    ~System() = default;
  };

  // What the policy keeps of one wait.
  struct Wait {
    unsigned first_spins = 0;  // polls before the first yield
    unsigned polls = 0;
    Time began{}, last{};  // when the clock was first read, and when last
  };

  constexpr explicit WaitPolicy(System& system) : system_(system) {}

  // To be called when a poll found nothing. Returns whether the core was given away for long.
  bool rest(Wait& wait);

  bool contended() const { return contended_; }

 private:
  bool yield(Wait& wait);
  bool spin_or_sleep(Wait& wait);
  void lost_core(Time taken, Time now);

  System& system_;
  bool contended_ = false;
  // When the thread began to yield; if the core is contended, when it will, and after how long.
  Time yields_since_{}, yields_at_{}, delay_{};
};

}  // namespace slimpi::comm
