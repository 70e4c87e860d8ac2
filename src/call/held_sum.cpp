// SPDX-License-Identifier: BSD-3-Clause
#include "call/held_sum.h"

#include "base/exceptions.h"
#include "call/queue.h"
#include "call/sum.h"

namespace slimpi::call {

// Adds the sum to the queue. Does nothing if the request is already active, because MPI then
// refuses to start it.
int HeldSum::before_start(bool* begins) {
  if (!persistent) return mpi::kSuccess;
  const auto self = std::static_pointer_cast<HeldSum>(shared_from_this());
  const Status status = caught([&] { *begins = add_sum(self); });
  if (status == Status::ok) return mpi::kSuccess;
  // The other ranks start this sum, so they must get an error, too.
  const Logging logging = report_failed_call(communicator, status);
  return runtime.errors.raise(comm_for_errors(), status, logging);
}

void HeldSum::taken_back() {
  remove_sum(*this);
}

bool HeldSum::forget_failure() {
  if (!failed_.exchange(false)) return false;
  set_in_flight(false);
  return true;
}

void HeldSum::drop() {
  {
    const HoldFibers held;
    dropped_ = true;
  }
  (void)forget_failure();
}

void HeldSum::begin() {
  runs_ = true;
  accepted = false;
}

void HeldSum::accept() {
  (void)forget_failure();  // of a start whose completion slimpi did not see
  failure.clear();
  accepted = true;
}

// The sum counts as in flight
// - without a failure: until its request is complete, because MPICH's MPI_Waitall cannot wait for a
//   pending generalized request;
// - with a failure: until the program has completed the request and got the error.
void HeldSum::end() {
  const bool keeps = !failure.none() && !dropped_;
  failed_.store(keeps, std::memory_order_release);
  complete();
  runs_ = false;
  if (!keeps) set_in_flight(false);
}

}  // namespace slimpi::call
