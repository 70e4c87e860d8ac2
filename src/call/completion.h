// SPDX-License-Identifier: BSD-3-Clause
// Called after a function of MPI has completed requests: copies the results of staged calls, which
// MPI wrote to copies of the buffers, back to the program, and raises the errors of failed sums.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "call/held.h"
#include "mpi/abi.h"

namespace slimpi::call {

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
  struct Noted {
    mpi::Request handle;
    std::shared_ptr<Held> held;
    std::uint64_t staged = 0;
    bool fails = false;  // raise() must raise an error
  };
  Noted* find(const Completed& completed, int i);
  bool completed_beside_error(const Noted& noted, int code, const Completed& completed) const;
  void finish_completed(int* code, const Completed& completed, bool ends);

  const void* const array_;  // the program's
  std::vector<Noted> noted_;
};

// Returns whether this thread is in an intercepted function that completes requests.
bool is_completing();

}  // namespace slimpi::call
