// SPDX-License-Identifier: BSD-3-Clause
// The functions by which src/intercept begins sums and lets them end, by the source that defines
// them. It also uses communicator_attribute.h, control.h, persistent.h, requests.h, saved_state.h.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "base/fiber.h"
#include "base/status.h"
#include "call/request.h"

namespace slimpi::call {

// admission.cpp

// Does the call, or leaves it to MPI. All three ways to begin a call count the blocks of a
// reduce-scatter, unless it is left to MPI at sight.
Outcome dispatch(Request& call);

// raise_error.cpp

// After an exception in dispatch(), begin() or init_persistent(), which became `status`: ends the
// job with one line, where it has begun.
void end_for(mpi::Comm comm, Status status);

// After another exception: raises an MPI error on the communicator and returns the code for the
// program.
int fail_on(mpi::Comm comm, Status status);

// call_mpi.cpp

// Calls the next definition: another tool's, or MPI's. Buffers that MPI cannot take are staged. The
// reason is for the trace and for SLIMPI_ESTIMATE, which records no call without one.
int call_mpi(const Request& call, std::optional<BypassReason> reason);

// The same without staging, trace and estimate. src/intercept defines it.
int call_mpi_unstaged(const Request& call);

// Counts the bytes of a call that MPI made because of its type, for the share of the report. A sum
// may also be an operation of the program's.
void count_bytes_of(const Request& call);
inline void count_other_bytes(const Request& call, int code) {
  if (code == mpi::kSuccess && call.op != mpi::abi.op_max && call.op != mpi::abi.op_min)
    count_bytes_of(call);
}

// For a count that only a missing function could take: logs an error and returns an MPI error code.
int refuse_count(const char* name, std::int64_t count);

// estimate.cpp

// Tells SLIMPI_ESTIMATE, where it runs, of a nonblocking or persistent call that is left to MPI.
void estimate_nonblocking(const Request& call, BypassReason reason);

// requests.cpp

// Begins a nonblocking call in the background, or leaves it to MPI. A call that was begun has
// written a request of MPI's to `request`, where the program's is.
Outcome begin(Request& call, void* request);

// Writes MPI_REQUEST_NULL and a complete request to requests[0] and [1]. False: MPI fails.
bool make_complete_request(int (&requests)[2]);

// persistent.cpp

// MPI_Allreduce_init: makes a persistent sum with its request, or leaves it to MPI. May wait for
// the other ranks.
Outcome init_persistent(Request& call, void* request);

// Starts those of the program's requests that are persistent sums. MPI has to start the requests,
// too.
int start_persistent(int count, const void* requests);

// staged_requests.cpp

// Where device::some_need_copies(): has MPI begin a nonblocking call, or make a persistent one, on
// copies of buffers that it cannot take. `next` calls the next definition, which writes MPI's
// request to `request`.
int begin_staged(const Request& call, void* request, bool persistent,
                 const std::function<int(const Request&)>& next);

// nonblocking.cpp

// Whether nonblocking sums are in flight. All that follows is for then.
inline bool sums_in_flight() {
  return g_fibers.load(std::memory_order_acquire) != 0;
}

// Lets them make progress.
void progress();

// Waits, while they make progress, until poll(argument) is true.
void wait_until(bool (*poll)(void*), void* argument);

// Waits for those of the communicator; for all.
void wait_for_sums_on(mpi::Comm comm);
void wait_for_all_sums();

// Before a communicator is freed: waits for its nonblocking sums, which use its state, and for
// slimpi's requests on it. MPI keeps a communicator that has one, and MPI_Comm_disconnect waits.
void finish_on(mpi::Comm comm);

// Raises an error if the request is a sum in flight, and returns its code; else MPI's success.
int refuse_to_cancel(const void* request);

// The program frees a request, so nobody completes it.
void drop_request(const void* request);

// As call_mpi_unstaged(), for the call that runs in this fiber, on slimpi's own communicator: on
// the program's, other collectives may have begun since. begin() calls MPI's nonblocking function
// of the call's form, because another form may add in another order. Returns MPI's code.
int sum_by_mpi(const Request& call, int (*begin)(const Request& call, mpi::Request* request));

}  // namespace slimpi::call
