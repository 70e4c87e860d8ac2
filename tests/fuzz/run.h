// SPDX-License-Identifier: BSD-3-Clause
// The state of a run, which its steps share: the seed, the step, the counts, and the failure.
#pragma once
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/fuzz/buffer.h"
#include "tests/fuzz/disturbance.h"

namespace fuzz {

constexpr std::size_t kMostElements = 200'000, kMostBytes = kMostElements * 8;

struct Run {
  std::uint64_t seed = 0, step = 0;
  int rank = 0, size = 0;
  bool on = true;        // as MPI_Pcontrol has it
  bool plain = false;    // MPI alone: that it answers all sums is right
  bool alone = true;     // no other thread sums: the process's statistics are of this one
  bool ways = false;     // also nonblocking and persistent sums
  bool doubles = false;  // also of doubles
  bool faults = false;   // an error of a sum ends the process; it is no defect
  bool watch = false;    // says what the process holds
  MPI_Comm world = MPI_COMM_WORLD;
  bool empty = false;        // most blocks of reduce-scatters have no elements
  bool mesh = false;         // each rank is in two groups, whose sums cross
  long renewed = 0;          // communicators that are made, summed on and freed before the steps
  bool failed = false;       // on this rank
  std::uint64_t sums = 0;    // of floats, on this rank
  std::uint64_t taken = 0;   // of these, answered by the library
  std::uint64_t digest = 0;  // of what the library answered
  Disturbance disturbance;
  Buffer in{kMostBytes}, out{kMostBytes};

  // Says what went wrong on this rank, in a line that tells how to see it again. The first one ends
  // the run, on all ranks together.
  void complain(const std::string& what);

  // Ends the process by an error that a fault has caused: says its text and the time, and leaves
  // the other ranks the time for theirs.
  [[noreturn]] void end_by(const std::string& error) const;
};

}  // namespace fuzz
