// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking sums, and the starts of persistent sums. Each runs in a fiber (base/fiber.h) and
// leaves it at every wait (comm::Waiter). The fiber is entered again in the program's MPI calls, or
// by a helper thread: always with SLIMPI_PROGRESS=thread, otherwise after 1 ms without any of these
// calls. Sums of one communicator run in sequence, in the order in which they began, while sums of
// different communicators and of persistent requests run side by side.
//
// For a nonblocking sum the program holds a generalized request, and for a persistent sum a
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
  Pending(Runtime& its_runtime, comm::Communicator& its_communicator, Request its_request)
      : runtime(its_runtime),
        communicator(its_communicator),
        comm(its_communicator.user()),
        request(std::move(its_request)) {
    request.blocks.keep(communicator.size());
  }
  bool failed() const { return failure != Status::ok || code != mpi::kSuccess; }

  Runtime& runtime;
  comm::Communicator& communicator;
  // The program's communicator, and the id of slimpi's state of it. The program may free the
  // communicator before the request is complete. Then slimpi knows no state of `comm`, or, if MPI
  // has used the handle again, a state with another id: see comm_for_errors() in call/completion.h.
  const mpi::Comm comm;
  std::uint64_t of_comm = communicator.id;
  Request request;
  const algorithm::Decision* decision = nullptr;  // of a persistent sum; null: nonblocking
  std::optional<BypassReason> bypass = {};        // why MPI sums; empty: the fiber decides
  mpi::Request handle = mpi::abi.request_null;
  // Completes the request. When it is called, the sum may be destroyed already.
  void (*end)(void* argument, bool failed) = nullptr;
  void* end_argument = nullptr;
  // The number of float sums that the program started on the communicator while this sum was the
  // last in the queue, and that did not join the queue: MPI made them, or they are persistent. When
  // this sum ends, they are counted for SLIMPI_CALLS_PER_STEP, so they count after this sum.
  std::uint64_t counted_later = 0;
  std::unique_ptr<Pending> next_failed;
  bool accepted = false;  // begin_sum() was called
  bool dropped = false;   // the program has freed the request
  // The error that the completion raises: MPI's code, if MPI made the sum, or a failure of slimpi.
  int code = mpi::kSuccess;
  Status failure = Status::ok;
  Logging logging = Logging::here;
  char text[FailureScope::kMost] = "";
};

// Enters the fiber of each communicator once more, so that all sums go on until they have to wait.
void enter_fibers() noexcept;

// Adds a sum to the queue of its communicator, where it waits for begin_sum().
Pending& add_sum(std::unique_ptr<Pending> sum);

// Begins a sum of add_sum() as soon as it is the first in its queue. To be called when MPI has
// accepted the request, so nothing here can fail. First set the sum's `handle` (the program's
// request) and its `end`, because the sum may be complete when begin_sum() returns.
void begin_sum(Pending& sum) noexcept;

// Removes a sum of add_sum() that has not begun, because MPI has refused its request.
void remove_sum(Pending& sum) noexcept;

// Returns whether a sum with one of these requests is in flight.
bool are_in_flight(std::span<const mpi::Request> handles);

// Returns the communicator on which to raise errors of the nonblocking sum with this request;
// MPI_COMM_NULL if the request is not of a nonblocking sum.
mpi::Comm comm_of_nonblocking(mpi::Request handle);

// Counts, for SLIMPI_CALLS_PER_STEP, a sum that does not join the queue of the communicator: MPI
// makes it, or it is persistent. It is counted after the sums in this queue, or at once if there
// are none.
void count_in_order(comm::Communicator& communicator);

// Keeps other threads from entering a fiber while this object lives. Meanwhile this thread can read
// data that the fibers of a communicator change.
class HoldFibers {
 public:
  HoldFibers();
  ~HoldFibers();
  HoldFibers(const HoldFibers&) = delete;
  HoldFibers& operator=(const HoldFibers&) = delete;

 private:
  const bool locks_;  // false in a fiber, whose thread holds the mutex already
};

// Ends the helper thread, which the next sum starts again. Call it only if no sum is in flight.
void end_helper();

// Waits until the sums that were begun on the communicator are complete.
void wait_for_sums(const comm::Communicator& communicator);

// Returns the sum whose fiber this thread has entered or is about to enter; null if there is none.
Pending* running_sum();

// Keeps a failure of the running sum. The call that completes the request raises
// the error.
int postpone_failure(Pending& sum, Status status, Logging logging);

}  // namespace slimpi::call
