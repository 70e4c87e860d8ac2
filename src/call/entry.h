// SPDX-License-Identifier: BSD-3-Clause
// The functions that src/intercept calls to start and finish sums, grouped by source file.
// src/intercept also uses communicator_attribute.h, control.h, held.h, hidden_functions.h and
// saved_state.h.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "base/fiber.h"
#include "base/status.h"
#include "call/request.h"

namespace slimpi::call {

// admission.cpp

// Runs a blocking call, or leaves it to MPI; the outcome says which. Like begin_nonblocking() and
// init_persistent(), this also sets the counts of a reduce-scatter or all-gather (count_blocks()),
// unless the call goes to MPI before that.
Outcome dispatch(Request& request);

// raise_error.cpp

// Logs the failure `status` in one line and ends the job, because other ranks may be waiting for
// this one in a sum. Called if an exception interrupts a sum's call or MPI_Start, and in
// MPI_Finalize if MPI's own MPI_Finalize would crash. Does nothing before slimpi has started.
void end_for(mpi::Comm comm, Status status);

// Raises an MPI error on the communicator, after an exception that need not end the job (see
// end_for()). Returns the code for the program.
int fail_on(mpi::Comm comm, Status status);

// call_mpi.cpp

// Forwards the call to the next definition of the function, another tool's or MPI's, with staged
// copies of buffers that MPI cannot access. The trace shows `reason`. Without a reason,
// SLIMPI_ESTIMATE does not record the call.
int call_mpi(const Request& request, std::optional<BypassReason> reason);

// Calls the next definition without staging, trace and estimate. Defined by src/intercept.
int call_mpi_unstaged(const Request& request);

// Count the bytes of a call that went to MPI because of its datatype; the report compares them with
// the bytes that were compressed. count_other_bytes() excludes only MPI_MAX and MPI_MIN, because an
// operation that the program has defined may be a sum.
void count_bytes_of(const Request& request);
inline void count_other_bytes(const Request& request, int code) {
  if (code == mpi::kSuccess && request.op != mpi::abi.op_max && request.op != mpi::abi.op_min)
    count_bytes_of(request);
}

// Logs that a count above INT_MAX is refused because the process's MPI lacks `name`, the function
// for large counts. The caller then returns mpi::kErrCount.
void refuse_count(const char* name, std::int64_t count);

// estimate.cpp

// Records a nonblocking or persistent call that is left to MPI, if SLIMPI_ESTIMATE is set.
void estimate_nonblocking(const Request& request, BypassReason reason);

// begin_nonblocking.cpp

// Begins a nonblocking call in the background, and writes its MPI request to `handle`, the address
// of the program's request; or leaves the call to MPI.
Outcome begin_nonblocking(Request& request, void* handle);

// Writes MPI_REQUEST_NULL to handles[0] and a complete request to handles[1].
// intercept/requests.cpp passes both to MPICH's mpi_f08 to learn whether it counts requests from 0
// or from 1. Returns false if MPI fails.
bool make_complete_request(int (&handles)[2]);

// persistent.cpp

// Runs MPI_Allreduce_init and the init functions of reduce-scatters and all-gathers: makes a
// persistent sum and its MPI request, or leaves the call to MPI. May wait for the other ranks.
Outcome init_persistent(Request& request, void* handle);

// held.cpp

// Starts the program's persistent requests: copies the inputs of staged calls, makes MPI start the
// requests through next(count, handles), and begins the sums among them. Returns the code for the
// program.
int start_requests(int count, void* handles, const std::function<int(int, void*)>& next);

// Refuses MPI_Cancel of a sum, even of a complete one: raises an error and returns its code. For
// any other request returns MPI_SUCCESS. `address` is that of the request's handle.
int refuse_to_cancel(const void* address);

// Makes MPI free a request through next(address), and ends slimpi's work for it. Waits for a
// persistent sum that is running. Returns MPI's code.
int free_request(void* address, const std::function<int(void*)>& next);

// held_copy.cpp

// Forwards a nonblocking or persistent call to MPI with staged copies of buffers that MPI cannot
// access. Called if device::some_need_copies(). `next` calls the next definition, which writes
// MPI's request to `handle`.
int begin_staged(const Request& request, void* handle, bool persistent,
                 const std::function<int(const Request&)>& next);

// queue.cpp

// Returns whether nonblocking or persistent sums are in flight, either slimpi's or MPI's on copies
// (begin_staged()).
inline bool sums_in_flight() {
  return g_fibers.load(std::memory_order_acquire) != 0;
}

// Waits until all sums in flight are complete.
void wait_for_all_sums();

// Lets MPI make the sum of the calling fiber on slimpi's internal communicator. The program's
// communicator would not do: the program may have begun other collectives on it meanwhile, in an
// order that differs among ranks. begin() must call MPI's nonblocking function for the same
// collective, because a different one may add in a different order. Returns MPI's code.
int sum_by_mpi(const Request& request, int (*begin)(const Request& request, mpi::Request* handle));

// communicator_attribute.cpp

// Waits until the nonblocking sums of the communicator are complete.
void wait_for_sums_on(mpi::Comm comm);

// Called before a communicator is freed. Waits for its nonblocking sums, which use its state, and
// for slimpi's own requests on it, because with a request pending MPI would keep the communicator
// and MPI_Comm_disconnect would wait.
void finish_on(mpi::Comm comm);

}  // namespace slimpi::call
