// SPDX-License-Identifier: BSD-3-Clause
// Whether MPI adds in the order in which slimpi adds inside a node. MPI chooses its algorithm by
// the count, by its variables and tuning files, and by earlier calls. So slimpi compares, for each
// count. MPI sums a probe vector whose sum differs in any other order, and the result must have the
// bytes of slimpi's order on every rank. Where it does not, calls of this count always go to MPI.
// Two addends have the same sum in either order, so two ranks compare nothing.
#pragma once
#include <cstdint>
#include <vector>

#include "comm/call.h"

namespace slimpi::intra {

class NodeOrder {
 public:
  // Reserves memory, so that takes() allocates nothing: a rank without memory there would decide
  // otherwise than the others.
  void reserve(int ranks);

  // Counts a call of `count` floats among `ranks` ranks; the same on all ranks. False: the call
  // goes to MPI. With more than two ranks, so do the first calls of each count, because a
  // comparison costs more than an MPI call: kUncompared of them, or one if `at_once`.
  bool takes(std::uint64_t count, int ranks, bool at_once);
  static constexpr std::uint32_t kUncompared = 10;

  // Whether this rank has compared, since takes() last requested it, for a call with this kind of
  // buffers. Ranks may differ.
  bool verified(const comm::Call& call);

  // Compares. Collective. Afterwards verified() is true on all ranks, or takes() is false on all.
  Status compare(const comm::Call& call, bool* same);

 private:
  struct Count {
    std::uint64_t count = 0;
    std::uint32_t calls = 0;
    bool refused = false;
    unsigned verified = 0;  // bits of kind_of
  };
  static unsigned kind_of(const comm::Call& call);

  // The entry of a count, or where it belongs.
  std::vector<Count>::iterator place(std::uint64_t count);

  std::vector<Count> counts_;  // by count, ascending; kMostCounts are reserved
  bool warm_ = false;  // the kWarmUpCalls were made, after which MPI may change its algorithm
};

}  // namespace slimpi::intra
