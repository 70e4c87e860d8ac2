// SPDX-License-Identifier: BSD-3-Clause
// One way to do a call that the autotuner may choose.
#pragma once
#include <compare>
#include <vector>

#include "base/algorithm_id.h"

namespace slimpi::call {

// MPI's own allreduce, the sum in shared memory of a node, or an algorithm between nodes.
class Candidate {
 public:
  static constexpr Candidate mpi() { return Candidate(-2); }
  static constexpr Candidate in_node() { return Candidate(-1); }
  static constexpr Candidate algorithm(AlgorithmId id) { return Candidate(int(id)); }

  // For the log and the report.
  const char* name() const {
    if (*this == mpi()) return "mpi";
    if (*this == in_node()) return "in the node";
    return to_string(AlgorithmId(value_));
  }

  constexpr auto operator<=>(const Candidate&) const = default;

 private:
  constexpr explicit Candidate(int value) : value_(value) {}
  int value_;  // an AlgorithmId, or less than 0
};

using Candidates = std::vector<Candidate>;

}  // namespace slimpi::call
