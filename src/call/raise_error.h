// SPDX-License-Identifier: BSD-3-Clause
// Raises a failure as an MPI error on the program's communicator or, where no error can reach the
// program, ends the job.
#pragma once
#include <array>
#include <atomic>
#include <string>

#include "base/status.h"
#include "mpi/abi.h"

namespace slimpi::call {

class Runtime;

// Which rank logs a failure: this one, or the rank that has reported the failure.
enum class Logging { here, elsewhere };

class Errors {
 public:
  explicit Errors(Runtime& runtime) : runtime_(runtime) {}

  // Raises an MPI error on the user's communicator, whose error handler runs, and returns the code
  // for the program. If the error belongs to no communicator, it is raised on MPI_COMM_WORLD or, in
  // a program that has only sessions, on its largest communicator.
  int raise(mpi::Comm comm, Status status, Logging logging = Logging::here);

  // Ends the job with one line that says why.
  [[noreturn]] void end_job(mpi::Comm comm, const std::string& why) const;

  // Forgets the error class and codes, as MPI did when it ended.
  void mpi_ended();

 private:
  int code_of(Status status, const std::string& text);
  mpi::Comm existing(mpi::Comm comm) const;
  bool is_fatal(mpi::Comm comm) const;
  [[noreturn]] void abort_job(mpi::Comm comm) const;

  Runtime& runtime_;
  // MPI's error class and its codes for failures, by Status; 0: not created yet.
  std::atomic<int> class_{0};
  std::array<std::atomic<int>, std::size_t(Status::internal) + 1> codes_{};
};

}  // namespace slimpi::call
