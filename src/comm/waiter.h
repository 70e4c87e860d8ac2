// SPDX-License-Identifier: BSD-3-Clause
// What a rank does between two polls while it waits for another rank or for a device. If every rank
// of the machine has a core of its own, it spins, as MPI does: a core that is yielded is free again
// only after the time slice of the process that got it. If ranks share cores, it yields: a rank
// that spins keeps the rank that it waits for from running.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/status.h"
#include "comm/stall.h"
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
    rest();
    return ++polls_ % polls_to_check_ == 0 ? check() : Status::ok;
  }

  // The same without the check, and without a report of a long wait.
  void rest();

  StallWatch& stall() { return stall_; }

 private:
  Status check();

  const Poll poll_;
  PointToPoint* const exchange_;
  const unsigned polls_to_check_;
  bool spins_;
  std::uint64_t polls_ = 0;
  std::chrono::steady_clock::time_point first_check_{};
  StallWatch stall_;
};

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

// Sets what all Waiters of the process do. Before the first call all yield. After one communicator
// found too few cores, all yield for good.
void note_cores(bool core_each);

}  // namespace slimpi::comm
