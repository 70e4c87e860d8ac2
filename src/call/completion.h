// SPDX-License-Identifier: BSD-3-Clause
// Called after a function of MPI has completed requests: copies the results of staged calls, which
// MPI wrote to copies of the buffers, back to the program, and raises the errors of failed sums.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "mpi/abi.h"

namespace slimpi::call {

struct Pending;
class Runtime;

// Marks that the thread is in an intercepted function that completes requests while this object
// lives.
class Completing {
 public:
  // Notes the requests of the program, before MPI changes them.
  Completing(int count, const void* handles);
  ~Completing();
  Completing(const Completing&) = delete;
  Completing& operator=(const Completing&) = delete;

  // Returns whether sums that are not complete are among the requests.
  bool has_sums() const;

  // The requests that the function has completed.
  struct Completed {
    int count = 0;
    const int* indices = nullptr;  // indices of the requests; null: the first `count` requests
    int base = 0;                  // first index: 0 in C, 1 in Fortran
    void* statuses = nullptr;      // the function's array of statuses, if any; `count` long
    bool several = false;          // the function takes an array
  };

  // Does the work that follows when a function has completed requests: copies the results of staged
  // calls to the program, takes the failures of the completed sums, raises their errors, and sets
  // the errors in the statuses. `code` is the code that MPI returned. Returns the code for the
  // program. ends: MPI has freed the completed requests, or made them inactive if they are
  // persistent. MPI_Request_get_status and its forms _all, _any and _some do neither.
  int raise(int code, const Completed& completed, bool ends = true);

 private:
  int index_of(const Completed& completed, int i) const;
  bool completed_beside_error(int index, int code, const Completed& completed) const;
  std::unique_ptr<Pending> finish_completed(int* code, const Completed& completed, bool ends);

  const void* const array_;  // the program's
  std::vector<mpi::Request> handles_;
  std::vector<std::uint64_t> staged_;
};

// Returns whether this thread is in an intercepted function that completes requests.
bool is_completing();

// Keeps a failed sum. To be called before its request is completed. The function that completes the
// request then raises the error.
void keep_failure(std::unique_ptr<Pending> sum);

// Drops the failure of the sum with this request: no function raises it any more.
void forget_failure(mpi::Request handle);

// Returns the communicator on which to raise an error of a sum: the program's, or MPI_COMM_WORLD if
// the program has freed its own. That is so if slimpi has no state of `comm` any more, or a state
// whose id is not `of_comm`.
mpi::Comm comm_for_errors(Runtime& runtime, mpi::Comm comm, std::uint64_t of_comm);
mpi::Comm comm_for_errors(const Pending& sum);

}  // namespace slimpi::call
