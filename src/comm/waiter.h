// SPDX-License-Identifier: BSD-3-Clause
// A wait for another rank or for a device: what is done between two polls. Where every rank of the
// machine has a core of its own, a waiting rank spins, as MPI does: a core that is given away comes
// back only after the time slice of whoever took it. Where ranks share cores it yields: a rank that
// spins keeps the one that it waits for from running.
#pragma once
#include <atomic>
#include <chrono>

#include "base/status.h"
#include "mpi/api.h"

namespace slimpi::comm {

class Exchange;

class Waiter {
 public:
  // What one poll of the caller does: reads a word in memory; asks MPI, which makes progress by it;
  // asks a device's driver, and MPI must make progress besides.
  enum class Poll { memory, mpi, device };

  // Without an exchange nobody is asked for failures, and MPI makes no progress.
  explicit Waiter(Poll poll, Exchange* exchange = nullptr);

  // To be called when a poll found nothing. Fails when another rank has reported a failure.
  Status pause() {
    rest();
    return ++polls_ % polls_to_check_ == 0 ? check() : Status::ok;
  }

  // The same without the check.
  void rest();

 private:
  Status check();

  const Poll poll_;
  Exchange* const exchange_;
  const unsigned polls_to_check_;
  bool spins_;
  unsigned polls_ = 0;
  std::chrono::steady_clock::time_point first_check_{};
};

// Whether the ranks of `comm` on this machine, and those that the launcher tells of, have a core
// each. Collective over comm. The answer is each machine's own: only speed depends on it.
Status find_cores(const mpi::Api& api, MPI_Comm comm, bool* core_each);

// What every Waiter of the process goes by, from the first communicator on; before, all yield. Once
// some communicator found too few cores, all yield for good.
void note_cores(bool core_each);

}  // namespace slimpi::comm
