// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking sums. Each runs in a fiber, which is left at every wait (comm::Waiter) and entered
// again from the program's MPI calls, or by a thread (SLIMPI_PROGRESS=thread, and where no call of
// the program comes for 1 ms). The sums of one communicator run one after the other, in the
// order in which they began; those of different communicators run side by side. The program holds a
// generalized request of MPI.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "base/described_tensor.h"
#include "base/status.h"
#include "call/entry.h"
#include "call/runtime.h"

namespace slimpi::call {

// One nonblocking sum, from its start to the completion of its request.
struct Sum {
  Sum(Runtime& its_runtime, comm::Communicator& its_communicator, const Allreduce& its_call,
      std::optional<DescribedTensor> its_tensor)
      : runtime(its_runtime),
        communicator(its_communicator),
        comm(its_communicator.user()),
        tensor(std::move(its_tensor)),
        call(its_call) {
    call.tensor = tensor ? &*tensor : nullptr;
  }
  bool failed() const { return failure != Status::ok || code != mpi::kSuccess; }

  Runtime& runtime;
  comm::Communicator& communicator;
  const mpi::Comm comm;  // the program's, as long as it has this state
  const comm::Communicator* of_comm = &communicator;
  const std::optional<DescribedTensor> tensor;
  Allreduce call;
  std::optional<BypassReason> bypass = {};  // why MPI makes it; decided at its start
  mpi::Request request = mpi::abi.request_null;
  void* program_request = nullptr;  // valid at its start only
  void (*ended)(Sum&) = nullptr;    // completes the request
  std::atomic<int> holders{1};      // the last one deletes it
  Sum* next_failed = nullptr;
  bool dropped = false;  // the program has freed the request
  // What the completion raises: MPI's code, where MPI made the sum, or a failure of slimpi's.
  int code = mpi::kSuccess;
  Status failure = Status::ok;
  bool logs = true;
  char text[FailureScope::kMost] = "";
};

// Lets all sums go on.
void enter_fibers();

// One holder less.
void release(Sum* sum);

// Before the request of a sum is completed: if it failed, the function that completes the request
// raises the error.
void keep_failure(Sum& sum);

// Where an error of the program's communicator `comm` is raised that had the state `of_comm`: the
// program may have freed it since.
mpi::Comm comm_for_errors(Runtime& runtime, mpi::Comm comm, const comm::Communicator* of_comm);

// Nobody raises it any more.
void forget_failure(mpi::Request request);

// Whether this thread is in an intercepted function that completes requests.
bool is_completing();

// Adds a sum to its communicator's queue, after start(), and begins it if it is the first one.
// Returns the code of start(). Once it is complete, sum.ended is called.
int start_sum(std::unique_ptr<Sum> sum, int (*start)(Sum&));

// Begins a sum. request: the program's handle.
Outcome begin_in_fiber(Runtime& runtime, comm::Communicator& communicator, const Allreduce& call,
                       std::optional<DescribedTensor> tensor, void* request);

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

// MPI ends; the requests of persistent sums (persistent.cpp) are not used any more.
void abandon_persistent();

// Whether some are not complete. To be called with HoldFibers.
bool has_sums(const comm::Communicator& communicator);

// Waits until the sums that were begun on the communicator are complete.
void wait_for_sums(const comm::Communicator& communicator);

// What the ranks of a communicator do before its first call. Collective; blocks. Defined in
// take_or_bypass.cpp.
Status meet(Runtime& runtime, comm::Communicator& communicator, const Allreduce& call);

// The steps of a call, blocking or not, from where the ranks of its communicator act together:
// every decision is the same on all of them. Defined in take_or_bypass.cpp.
Outcome dispatch_together(Runtime& runtime, comm::Communicator& communicator,
                          const Allreduce& call);

// For a failure of the sum that runs in this fiber: keeps it for the call that completes the
// request. Empty outside a fiber.
std::optional<int> postpone_failure(Status status, bool logs);

}  // namespace slimpi::call
