// SPDX-License-Identifier: BSD-3-Clause
// What a rank does between two polls while it waits for another rank or for a device. Whether it
// keeps its core meanwhile is for wait_policy.h to say.
#pragma once
#include <chrono>
#include <cstdint>

#include "base/status.h"
#include "comm/stall.h"
#include "comm/wait_policy.h"
#include "mpi/api.h"

namespace slimpi::comm {

class PointToPoint;

class Waiter {
 public:
  // What one poll of the caller does. memory: reads a word in memory. mpi: calls MPI, which makes
  // progress by it. device: calls a device's driver; MPI must be called as well to make progress.
  enum class Poll { memory, mpi, device };

  // Without an exchange, failures of other ranks are not checked and MPI makes no progress. `stage`
  // and `request`: what the wait is for; with a request the exchange knows its stage.
  explicit Waiter(Poll poll, PointToPoint* exchange = nullptr, WaitStage stage = WaitStage::device,
                  const mpi::Request* request = nullptr);

  // To be called when a poll found nothing. Fails when another rank has reported a failure.
  Status pause() {
    const bool long_rest = give_way();
    return ++polls_ % polls_to_check_ == 0 || long_rest ? check() : Status::ok;
  }

  // The same without the check, and without a report of a long wait.
  void rest() { (void)give_way(); }

  StallWatch& stall() { return stall_; }

 private:
  bool give_way();  // returns whether it took long
  Status check();

  const Poll poll_;
  PointToPoint* const exchange_;
  const unsigned polls_to_check_;
  WaitPolicy::Wait wait_;
  std::uint64_t polls_ = 0;
  std::chrono::steady_clock::time_point first_check_{};
  StallWatch stall_;
};

// For a thread that runs all ranks itself, as a test does: it then neither yields nor sleeps.
void poll_without_rest();

// Calls poll(&done), which returns a Status, until it sets `done`.
template <typename Function>
Status wait_until(Waiter&& waiter, const Function& poll) {
  for (bool done = false;;) {
    SLIMPI_TRY(poll(&done));
    if (done) return Status::ok;
    SLIMPI_TRY(waiter.pause());
  }
}

template <typename Function>
Status wait_until(Waiter::Poll kind, PointToPoint* exchange, const Function& poll) {
  return wait_until(Waiter(kind, exchange), poll);
}

}  // namespace slimpi::comm
