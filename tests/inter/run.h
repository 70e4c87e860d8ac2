// SPDX-License-Identifier: BSD-3-Clause
// One exchange of one schedule among ranks of this process, and what it must give.
#pragma once
#include <cstdint>
#include <string>

#include "inter/schedule.h"

namespace slimpi::test {

struct Case {
  enum class Kind { pairwise, bruck, neighbors, scatter, hook };
  Kind kind = Kind::pairwise;
  std::uint64_t seed = 0;
  int ranks = 2;
  std::uint64_t count = 0;  // of the shard
  std::uint64_t first = 0;  // position of the shard in the vector
  kernels::Format format;
  comm::SegmentClass segment_class = comm::SegmentClass::small;
  Peers peers = Peers::ring;
  bool residual = false, totals = false, in_place = false;
  std::uint32_t staged = 0;  // ranks, as bits, that have the late device
  bool gpu_aware = false;    // MPI takes that device's memory
  std::uint64_t piece = 0;   // of a hook: floats of a segment, at most

  // What a member owns. Of a scatter, whose chunks are a program's blocks: of any length.
  comm::Range chunk(int member) const;

  std::string text() const;
};

// A case for a schedule; the same for the same seed.
Case draw_case(Case::Kind kind, std::uint64_t seed);

// One where all ranks have the late device, MPI does not take its memory, and the exchange is so
// long that every message buffer is received into several times.
Case draw_staged_ring(Case::Kind kind, std::uint64_t seed);

// Runs it on all ranks and compares. Empty, or what was wrong.
std::string run_case(const Case& one);

}  // namespace slimpi::test
