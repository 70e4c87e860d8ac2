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

// While slimpi calls a function of MPI as the program does, to see whether it comes back here: set
// to true by slimpi's definition, which does nothing else then. Null: no such call. Sums count as
// in flight meanwhile.
inline constinit thread_local bool* t_probe = nullptr;
inline bool is_probe() {
  if (t_probe != nullptr) *t_probe = true;
  return t_probe != nullptr;
}

// While this object lives, the thread is in an intercepted function that completes requests.
class Completing {
 public:
  // The requests of the program, before MPI changes them.
  Completing(int count, const void* requests);
  ~Completing();
  Completing(const Completing&) = delete;
  Completing& operator=(const Completing&) = delete;

  // Whether sums are among them that are not complete.
  bool has_sums() const;

  // The requests that the function has completed.
  struct Completed {
    int count = 0;
    const int* indices = nullptr;  // of the requests; null: the first ones
    int base = 0;                  // of the indices
    void* statuses = nullptr;      // where the function has an array of them, of so many
    bool several = false;          // the function has an array
  };

  // Gives the program the results of staged calls among them, and raises the errors of the sums.
  // Returns the code for the program, where MPI's own is `code`. ends: MPI has freed the requests.
  int raise(int code, const Completed& completed, bool ends = true);

 private:
  const void* const array_;  // the program's
  std::vector<mpi::Request> requests_;
  std::vector<std::uint64_t> staged_;
};

// Whether this thread is in an intercepted function that completes requests.
bool is_completing();

// Before the request of a sum is completed: if it failed, the function that completes the request
// raises the error.
void keep_failure(std::unique_ptr<Pending> sum);

// Nobody raises it any more.
void forget_failure(mpi::Request request);

// The communicator on which to raise an error: `comm`, or MPI_COMM_WORLD if the program has freed
// `comm` since it had the state `of_comm`.
mpi::Comm comm_for_errors(Runtime& runtime, mpi::Comm comm, const comm::Communicator* of_comm);

// Finds out which functions a tool keeps from slimpi (mpi::g_completions_hidden and
// g_starts_hidden), and says so on rank 0.
void find_hidden_functions(const Runtime& runtime);

}  // namespace slimpi::call
