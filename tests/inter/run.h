// SPDX-License-Identifier: BSD-3-Clause
// One exchange of one schedule among ranks of this process, and the comparison of its results.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "inter/schedule.h"
#include "tests/helper/mpi/memory_exchange.h"

namespace slimpi::test {

struct Case {
  enum class Kind { pairwise, bruck, neighbors, scatter, hook, gather };
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
  std::uint64_t piece = 0;   // of a hook, or of a pairwise exchange with short segments: elements
                             // of a segment, at most

  bool even = false;  // of a scatter or gather: chunks as those of a sum

  bool has_blocks() const { return kind == Kind::scatter || kind == Kind::gather; }
  // The chunk that a member owns. Chunks of a scatter or gather are a program's blocks and have any
  // length.
  comm::Range chunk(int member) const;
  // Where a gather puts the chunk of a member in the result of `me`. There are gaps between them,
  // and their order differs between ranks.
  static constexpr std::uint64_t kGap = 3;
  std::uint64_t place(int me, int member) const {
    const comm::Range its = chunk(member);
    return me % 2 == 0 ? its.first + std::uint64_t(member) * kGap
                       : count - its.first - its.count + std::uint64_t(ranks - 1 - member) * kGap;
  }

  std::string text() const;
};

// A case for a schedule; the same for the same seed.
Case draw_case(Case::Kind kind, std::uint64_t seed);

// A case in which all ranks have the late device, MPI does not take the device's memory, and the
// exchange is so long that every message buffer receives several messages.
Case draw_staged_ring(Case::Kind kind, std::uint64_t seed);

// A hash of 64 bits.
class Hash {
 public:
  template <typename Value>
  void add(const std::vector<Value>& values) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(values.data());
    const std::size_t length = values.size() * sizeof(Value);
    for (std::size_t at = 0; at < length; at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes + at, std::min<std::size_t>(8, length - at));
      hash_ = (hash_ ^ word) * 0x9e3779b97f4a7c15;
      hash_ ^= hash_ >> 29;
    }
    hash_ = mixed(hash_ + length);
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0;
};

// Ranks that run in one process, and their work.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int size() const = 0;
  virtual int rank_of(int member) const = 0;
  virtual void prepare(int me, Network& network, Chance& chance) = 0;
  virtual void run(int me) = 0;
  virtual void add_memory(Hash& hash) const = 0;
  virtual std::string verdict() = 0;  // after the end of all; empty where all is right
};

// A chosen interleaving, with a planted fault. state() is a hash of the positions of the ranks in
// their code, of the messages under way and of the ranks' memory. After kStop the result is empty.
struct Interleaving {
  std::function<std::size_t(std::size_t steps, const std::function<std::uint64_t()>& state)> choose;
  Planted planted;
};

// Runs the ranks in an interleaving that is drawn or chosen. Returns "" or the first fault.
std::string run_ranks(Ranks& ranks, Chance& chance, const Interleaving* interleaving);

// The largest value of any rank. scratch: bytes up to the last byte written.
struct Busiest {
  std::size_t messages = 0, bytes = 0, peers = 0, scratch = 0;
};
std::string run_case(const Case& one, const Interleaving* interleaving = nullptr,
                     Busiest* busiest = nullptr);

}  // namespace slimpi::test
