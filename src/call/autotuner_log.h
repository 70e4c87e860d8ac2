// SPDX-License-Identifier: BSD-3-Clause
// What the autotuner tried and chose, by size class: for the log and the report. Rank 0 of each
// communicator adds; any thread may.
#pragma once
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "observe/report.h"

namespace slimpi::call {

// The names of the ways to do a call that the autotuner may choose: "mpi", MPI's own allreduce; "in
// the node", the sum in shared memory of a node; or an algorithm between nodes.
using Candidates = std::span<const char* const>;

class AutoChoices {
 public:
  // Never destroyed: the report may be written by an exit handler.
  static AutoChoices& all() {
    static auto* const choices = new AutoChoices;
    return *choices;
  }

  // One call of `bytes` bytes with candidates[which].
  void add(Candidates candidates, std::uint64_t bytes, std::size_t which,
           std::uint64_t nanoseconds);
  // candidates[which] won. Returns the line for the log.
  std::string choose(Candidates candidates, std::uint64_t bytes, std::size_t which);

  // By size.
  std::vector<AutoChoice> rows();

 private:
  AutoChoice& row_of(Candidates candidates, std::uint64_t bytes);

  std::mutex mutex_;  // protects rows_
  std::vector<AutoChoice> rows_;
};

}  // namespace slimpi::call
