// SPDX-License-Identifier: BSD-3-Clause
// A wait for another rank or for a device: what a rank does between two polls, and what becomes of
// a wait that lasts long. A wait fails if another rank sums something else in the same call, or has
// called MPI_Finalize before that call. A long wait is reported after SLIMPI_STALL, and fails after
// SLIMPI_TIMEOUT. wait_policy.h decides whether the thread keeps its core meanwhile.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/wait_policy.h"
#include "mpi/api.h"
#include "observe/activity.h"

namespace slimpi::comm {

class Exchange;
class PointToPoint;

class Waiter {
 public:
  // Says what one poll of the caller does: `memory` reads a word in memory, `mpi` calls MPI, which
  // lets messages make progress, and `device` calls a device's driver. With `device` the wait
  // itself must call MPI for messages to make progress.
  enum class Poll { memory, mpi, device };

  // Begins a wait. `exchange`, unless null, must be open. Without it the wait does not notice
  // failures of other ranks, and only Poll::mpi lets messages make progress. `stage` says what the
  // wait is for; if `request` is given, the wait is for this request, and Exchange::stage_of() says
  // its stage.
  explicit Waiter(Poll poll, PointToPoint* exchange = nullptr, WaitStage stage = WaitStage::device,
                  const mpi::Request* request = nullptr);
  ~Waiter() {
    if (published_) end();
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Called for a wait without an exchange. Sets the limit of the wait (SLIMPI_TIMEOUT, or 0 for no
  // limit), and one word per rank that is negative until something has come from that rank. A
  // report names the ranks whose word is negative.
  void set_arrivals(std::span<const int> arrivals, std::chrono::seconds timeout) {
    arrivals_ = arrivals;
    timeout_ = timeout;
  }

  // Passes the time after a poll that found nothing. Fails if another rank has reported a failure,
  // if the wait would never end, or if it has lasted too long.
  Status pause() {
    const bool long_rest = give_way();
    return ++polls_ % polls_to_check_ == 0 || long_rest ? check() : Status::ok;
  }

  // Passes the time without that check, and without a report of a long wait.
  void rest() { (void)give_way(); }

  // Returns whether a poll has found nothing.
  bool rested() const { return rested_; }

 private:
  using Clock = std::chrono::steady_clock;
  // Why the other ranks are asked where they are (RollCall), in the order in which the reasons
  // arise.
  enum class Question { none, compare, report, timeout };

  bool give_way();  // whether the core was given away for long
  void note_fiber();
  bool follow_fibers();
  bool pass_time();
  Status check();
  Status check_long(Clock::time_point now);
  void publish();
  Question question_due(Clock::duration waited) const;
  void ask_if_due(Clock::time_point now);
  void report(std::chrono::seconds waited);
  std::vector<int> absent() const;
  std::string describe_absent() const;
  std::string describe(std::chrono::seconds waited) const;
  void end();

  const Poll poll_;
  PointToPoint* const exchange_;
  const unsigned polls_to_check_;
  WaitPolicy::Wait rests_;
  std::uint64_t fiber_waits_ = 0;  // see fibers_moved()
  bool rested_ = false;
  std::uint64_t polls_ = 0;
  // began_ is the time of the first check, plus the time in which the process did not wait. looked_
  // is the time of the last check.
  Clock::time_point began_{}, looked_{};

  // Used once a wait lasts long. Both pointers may be null.
  Exchange* const asks_;  // the exchange that asks the other ranks
  const mpi::Request* const request_;
  WaitStage stage_;
  std::span<const int> arrivals_;
  std::chrono::seconds timeout_{0};
  bool published_ = false;
  Question question_ = Question::none;  // the last question; it was sent if asked_
  bool asked_ = false, reported_ = false;
  Clock::time_point asked_at_{};
};

// Returns the time of WaitPolicy's clock.
WaitPolicy::Time now();

// Called by threads that enter fibers. fibers_moved() returns whether fibers have begun to wait for
// other messages since the last call with this `seen`. fibers_due() returns when the first message
// that a fiber waits for is due, or 0 if that is unknown. Call forget_fibers_due() before a round
// in which all fibers are entered, since each of them then notes when its message is due.
bool fibers_moved(std::uint64_t* seen);
WaitPolicy::Time fibers_due();
void forget_fibers_due();

// Makes the waits of this thread neither yield nor sleep, for a test that runs all ranks in one
// thread.
void poll_without_rest();

// Polls until `done` is true, and lets the waiter spin, yield or sleep between two polls. Fails as
// soon as poll(&done) or the waiter fails.
template <typename Function>
Status wait_until(Waiter& waiter, const Function& poll) {
  for (bool done = false;;) {
    SLIMPI_TRY(poll(&done));
    if (done) return Status::ok;
    SLIMPI_TRY(waiter.pause());
  }
}

template <typename Function>
Status wait_until(Waiter::Poll kind, PointToPoint* exchange, const Function& poll) {
  Waiter waiter(kind, exchange);
  return wait_until(waiter, poll);
}

}  // namespace slimpi::comm
