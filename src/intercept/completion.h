// SPDX-License-Identifier: BSD-3-Clause
// What the functions that complete requests do in each language. While nonblocking sums are in
// flight, they let them make progress: MPI cannot. A wait for one or for all requests polls them
// without completing them, and then calls the next definition, which returns at once. A wait for
// some of them polls with the next MPI_Testany or MPI_Testsome, because which requests are active
// cannot be asked. Without sums in flight each function is a load and a branch before the next
// definition.
#pragma once
#include "call/entry.h"
#include "intercept/catch_all.h"

namespace slimpi::intercept {

// What an error handler of the program throws passes; see catch_all.h.
inline int raise(call::Completing& completing, int code,
                 const call::Completing::Completed& completed) {
  (void)catch_all([&] { code = completing.raise(code, completed); });
  return code;
}

template <typename Poll>
void wait_until(Poll poll) {
  (void)catch_all(
      [&] { call::wait_until([](void* one) { return (*static_cast<Poll*>(one))(); }, &poll); });
}

inline void wait_for_all(int count, const void* requests) {
  int complete = 0;
  wait_until([&] { return call::are_complete(count, requests, &complete); });
}

// `finish` calls the next definition. statuses: of MPI_Waitall.
template <typename Finish>
int wait_all(int count, const void* requests, const Finish& finish, void* statuses = nullptr,
             bool several = false) {
  if (!call::sums_in_flight()) [[likely]]
    return finish();
  call::Completing completing(count, requests);
  wait_for_all(count, requests);
  return raise(completing, finish(), {.count = count, .statuses = statuses, .several = several});
}

// `test` calls the next definition of the function that does not wait. It says what it has
// completed in *completed, and whether it found something.
template <typename Test>
int wait_some(int count, const void* requests, const Test& test) {
  call::Completing completing(count, requests);
  call::Completing::Completed completed;
  int code = 0;
  wait_until([&] { return test(&code, &completed) || code != 0; });
  return raise(completing, code, completed);
}

// `finish` calls the next definition and says what it has completed.
template <typename Finish>
int test(int count, const void* requests, const Finish& finish) {
  call::Completing::Completed completed;
  if (!call::sums_in_flight()) [[likely]]
    return finish(&completed);
  call::Completing completing(count, requests);
  (void)catch_all(call::progress);
  const int code = finish(&completed);
  return raise(completing, code, completed);
}

inline int start(int count, const void* requests) {
  int code = 0;
  const Status status = catch_all([&] { code = call::start_persistent(count, requests); });
  return status == Status::ok ? code : mpi::abi.err_other;
}

// MPI_Cancel of a persistent sum is an error; 0 for other requests.
inline int refuse_to_cancel(void* request) {
  int code = 0;
  (void)catch_all([&] { code = call::refuse_to_cancel(request); });
  return code;
}

}  // namespace slimpi::intercept
