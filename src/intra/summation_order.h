// SPDX-License-Identifier: BSD-3-Clause
// Whether MPI adds in the order in which slimpi adds inside a node. MPI chooses its algorithm by
// the count, by its own variables and tuning files, and by the calls before, so slimpi compares,
// for each count: MPI sums a probe vector, whose sum in any other order differs, and the result
// must be the one that slimpi's order gives, bit for bit, on every rank. Where it is not, calls of
// this count go to MPI for good.
#pragma once
#include <cstdint>
#include <map>

#include "comm/call.h"

namespace slimpi::intra {

class NodeOrder {
 public:
  // Notes a call of `count` floats; alike on all ranks. False: it goes to MPI, as does the first
  // call of each count, because a count that does not come again is not worth a comparison.
  bool takes(std::uint64_t count);

  // Whether this rank compared since takes() last asked for it, for a call with this kind of
  // buffers. Ranks may differ in it.
  bool verified(const comm::Call& call) const;

  // Compares. Collective; afterwards verified() holds on all ranks, or takes() is false on all.
  Status compare(const comm::Call& call, bool* same);

 private:
  struct Count {
    std::uint32_t calls = 0;
    bool refused = false;
    unsigned verified = 0;  // bits of kind_of
  };
  static unsigned kind_of(const comm::Call& call);

  std::map<std::uint64_t, Count> counts_;
  bool warm_ = false;  // the calls after which MPI may change its algorithm were made
};

}  // namespace slimpi::intra
