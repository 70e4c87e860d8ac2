// SPDX-License-Identifier: BSD-3-Clause
// The queues of nonblocking sums and of the starts of persistent sums. Each sum runs in a fiber
// (base/fiber.h), which it leaves at every wait (comm::Waiter). The program's MPI calls enter the
// fiber again. So does a helper thread, with SLIMPI_PROGRESS=thread all the time, otherwise once
// the program has made none of these calls for 1 ms. The sums of one communicator run one at a
// time, in the order in which they began, while those of different communicators and of persistent
// requests run side by side.
#pragma once
#include <memory>

#include "base/status.h"
#include "call/raise_error.h"
#include "comm/communicator.h"

namespace slimpi::call {

class HeldSum;

// Enters the fiber of each communicator, so that all sums run until they have to wait.
void enter_fibers() noexcept;

// Adds a sum to the queue of its communicator, where it waits for begin_sum(). Returns false if the
// sum has begun already, because its request is active.
bool add_sum(std::shared_ptr<HeldSum> sum);

// Lets a sum that add_sum() has queued begin as soon as it is the first in its queue. Called once
// MPI has accepted the request, so this function must not fail. The sum may be complete when it
// returns.
void begin_sum(HeldSum& sum) noexcept;

// Removes a sum that add_sum() has queued, because MPI has refused its request. Does nothing if the
// sum has begun.
void remove_sum(HeldSum& sum) noexcept;

// Counts, for SLIMPI_CALLS_PER_STEP, a sum that does not join the queue of the communicator because
// MPI makes it or because it is persistent. It counts after the sums in the queue, or at once if
// there are none.
void count_in_order(comm::Communicator& communicator);

// Keeps other threads from entering fibers, for its lifetime, so that this thread can read data
// that the fibers of a communicator change.
class HoldFibers {
 public:
  HoldFibers();
  ~HoldFibers();
  HoldFibers(const HoldFibers&) = delete;
  HoldFibers& operator=(const HoldFibers&) = delete;

 private:
  const bool locks_;  // false in a fiber, whose thread holds the mutex
};

// Ends the helper thread, which the next sum starts again. No sum may be in flight.
void end_helper();

// Waits until the sums that have begun on the communicator are complete.
void wait_for_sums(const comm::Communicator& communicator);

// Returns the sum whose fiber this thread is in or about to enter, or null.
HeldSum* running_sum();

// Keeps a failure of the running sum for the function that completes the request, which then raises
// the error.
int postpone_failure(HeldSum& sum, Status status, Logging logging);

}  // namespace slimpi::call
