// SPDX-License-Identifier: BSD-3-Clause
// Which communicators slimpi follows, and their end.
#pragma once
#include <atomic>

#include "mpi/abi.h"

namespace slimpi::call {

// While this object lives, the thread frees `comm`. The program's delete callbacks run; float sums
// that they make on `comm` go to MPI.
class Freeing {
 public:
  explicit Freeing(mpi::Comm comm);
  ~Freeing();
  Freeing(const Freeing&) = delete;
  Freeing& operator=(const Freeing&) = delete;

  // Whether this thread is freeing `comm`. A thread sees its own increment at once, and needs no
  // other's.
  static bool is_freeing(mpi::Comm comm) {
    return alive_.load(std::memory_order_relaxed) != 0 && frees(comm);
  }

 private:
  static bool frees(mpi::Comm comm);
  static inline std::atomic<int> alive_{0};  // of all threads

  const mpi::Comm comm_;
  const Freeing* const outer_;
};

// While this object lives, MPI_Finalize runs. Delete callbacks of the program may call
// MPI_Allreduce on communicators that are about to be freed.
class Finalizing {
 public:
  Finalizing();
  ~Finalizing();
  Finalizing(const Finalizing&) = delete;
  Finalizing& operator=(const Finalizing&) = delete;

  // Whether the process is inside MPI_Finalize.
  static bool is_finalizing() { return now_.load(std::memory_order_relaxed); }

 private:
  static inline std::atomic<bool> now_{false};
};

// A session was opened; a session was closed.
void session_opened();
void session_closed();

// How many sessions were opened in this process so far.
int sessions_seen();

}  // namespace slimpi::call
