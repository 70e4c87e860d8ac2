// SPDX-License-Identifier: BSD-3-Clause
// The requests of nonblocking sums, and the functions that complete requests.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "mpi/abi.h"

namespace slimpi::call {

class Runtime;
struct Pending;

// Set while slimpi makes a probe: it calls a function of MPI as the program does, to see whether
// this call comes back to slimpi. Then slimpi's definition only sets *t_probe to true. Null: this
// thread makes no probe. Sums count as in flight during a probe, because otherwise the definitions
// do not look at t_probe.
inline constinit thread_local bool* t_probe = nullptr;
inline bool is_probe() {
  if (t_probe != nullptr) *t_probe = true;
  return t_probe != nullptr;
}

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
    const int* indices = nullptr;  // indices of the requests; null: the first ones
    int base = 0;                  // first index: 0 in C, 1 in Fortran
    void* statuses = nullptr;      // the function's array of statuses, if any; `count` long
    bool several = false;          // the function takes an array
  };

  // Does the work that follows when a function has completed requests: copies the results of staged
  // calls to the program, takes the failures of the completed sums, raises their errors, and sets
  // the errors in the statuses. `code` is the code that MPI returned. Returns the code for the
  // program. ends: MPI has freed the completed requests, as all functions but
  // MPI_Request_get_status do.
  int raise(int code, const Completed& completed, bool ends = true);

 private:
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

// Returns the communicator on which to raise an error: `comm`, or MPI_COMM_WORLD if `comm` no
// longer has the state `of_comm`, because the program has freed it.
mpi::Comm comm_for_errors(Runtime& runtime, mpi::Comm comm, const comm::Communicator* of_comm);

// Finds the functions that a tool hides from slimpi (mpi::g_completions_hidden and
// g_starts_hidden), and warns of them on rank 0.
void find_hidden_functions(const Runtime& runtime);

}  // namespace slimpi::call
