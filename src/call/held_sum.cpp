// SPDX-License-Identifier: BSD-3-Clause
#include "call/held_sum.h"

#include "call/nonblocking.h"

namespace slimpi::call {

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
  (void)forget_failure();  // of a start whose completion slimpi did not see
  runs_ = true;
  accepted = false;
  failure.clear();
}

// The sum counts as in flight:
// - without a failure: until its request is complete, because MPI_Waitall of MPICH cannot wait for
//   a generalized request that is pending;
// - with a failure: until the program has completed the request and has got the error.
void HeldSum::end() {
  const bool keeps = !failure.none() && !dropped_;
  failed_.store(keeps, std::memory_order_release);
  complete();
  runs_ = false;
  if (!keeps) set_in_flight(false);
}

}  // namespace slimpi::call
