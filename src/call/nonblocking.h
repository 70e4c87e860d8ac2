// SPDX-License-Identifier: BSD-3-Clause
// Sums that the program does not wait for in the call: nonblocking ones, and the starts of
// persistent ones. Each runs in a fiber, which is left at every wait (comm::Waiter) and entered
// again from the program's MPI calls, or by a thread (SLIMPI_PROGRESS=thread, and where no call of
// the program comes for 1 ms). The sums of one communicator run one after the other, in the order
// in which they began; those of different communicators and of persistent requests run side by
// side.
//
// For a nonblocking sum the program holds a generalized request. For a persistent one it holds a
// persistent receive of an empty message, which this process sends to itself when the sum is
// complete.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "algorithm/policy.h"
#include "base/status.h"
#include "call/request.h"
#include "call/runtime.h"

namespace slimpi::call {

// One sum, from its start to the completion of its request.
struct Pending {
  Pending(Runtime& its_runtime, comm::Communicator& its_communicator, Request its_call)
      : runtime(its_runtime),
        communicator(its_communicator),
        comm(its_communicator.user()),
        call(std::move(its_call)) {
    call.blocks.keep(communicator.size());
  }
  bool failed() const { return failure != Status::ok || code != mpi::kSuccess; }

  Runtime& runtime;
  comm::Communicator& communicator;
  const mpi::Comm comm;  // the program's, as long as it has this state
  const comm::Communicator* of_comm = &communicator;
  Request call;
  const algorithm::Decision* decision = nullptr;  // of a persistent sum, from its init
  std::optional<BypassReason> bypass = {};        // why MPI makes it; decided at its start
  mpi::Request request = mpi::abi.request_null;
  // Completes the request. The sum may be gone by then.
  void (*end)(void* argument, bool failed) = nullptr;
  void* end_argument = nullptr;
  // Sums of the communicator that MPI made since this one began, and that SLIMPI_CALLS_PER_STEP
  // counts after it.
  std::uint64_t counted_later = 0;
  std::unique_ptr<Pending> next_failed;
  bool dropped = false;  // the program has freed the request
  // What the completion raises: MPI's code, where MPI made the sum, or a failure of slimpi's.
  int code = mpi::kSuccess;
  Status failure = Status::ok;
  bool logs = true;
  char text[FailureScope::kMost] = "";
};

// Lets all sums go on.
void enter_fibers();

// Adds a sum, whose request is made, to its communicator's queue, and begins it if it is the first
// one there.
void start_sum(std::unique_ptr<Pending> sum);

// Whether sums with these requests are not complete.
bool are_in_flight(std::span<const mpi::Request> requests);

// Counts a sum of the communicator that MPI makes, after those that have begun there.
void count_in_order(comm::Communicator& communicator);

// While this object lives, no other thread enters a fiber: calls on a communicator are looked at.
class HoldFibers {
 public:
  HoldFibers();
  ~HoldFibers();
  HoldFibers(const HoldFibers&) = delete;
  HoldFibers& operator=(const HoldFibers&) = delete;
};

// Ends the helper thread, which the next sum starts again. No sum is in flight.
void end_helper();

// Waits until the sums that were begun on the communicator are complete.
void wait_for_sums(const comm::Communicator& communicator);

// The sum that runs in this fiber; null outside a fiber.
Pending* running_sum();

// For a failure of the sum that runs in this fiber: keeps it for the call that completes the
// request.
int postpone_failure(Pending& sum, Status status, bool logs);

}  // namespace slimpi::call
