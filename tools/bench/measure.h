// SPDX-License-Identifier: BSD-3-Clause
// Measures all candidates of slimpi-bench at one size. They take turns, so that a moment when the
// machine or the network is busy slows all of them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/candidate.h"

namespace slimpi::bench {

// The results of one candidate at one size. Times are seconds of the slowest rank for one call.
struct Row {
  std::uint64_t bytes = 0;
  std::string name;
  double bits = 0;
  int iterations = 0;
  double median = 0, least = 0;
  double algbw = 0, busbw = 0;           // bytes per second, as nccl-tests defines them
  double speedup = 1;                    // median of plain MPI divided by this median
  std::optional<double> limit;           // least time that the links allow
  std::optional<double> error;           // relative L2, against the sum in double
  std::optional<double> vnmse;           // the square of error
  std::optional<double> zeros;           // relative L2 error against the sum in double precision
  std::optional<double> wrong_signs;     // share with the wrong sign, of the same values
  std::optional<bool> same;              // every rank has the same bytes
  std::optional<bool> compressed;        // slimpi took the call over and compressed it
  std::optional<std::uint64_t> sent;     // bytes between nodes, by slimpi's own count
  std::optional<std::uint64_t> on_wire;  // bytes on the nodes' interfaces, headers included
  std::string label() const;             // "bytegrad 8"
};

class Bench {
 public:
  // Allocates and fills the buffers for all sizes up to the largest of the options. Check
  // has_memory() before measure().
  Bench(const Options& options, const World& world);
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // Returns whether every rank has memory for the largest size. All ranks get the same answer.
  bool has_memory() const { return has_memory_; }

  // Measures all candidates with buffers of `bytes` bytes. Collective. Returns a row for each
  // candidate, plain MPI first; all ranks get the same rows.
  std::vector<Row> measure(std::uint64_t bytes);

 private:
  struct Plan;
  double time(const Candidate& candidate, std::uint64_t count, int calls);
  Plan plan(std::uint64_t count);
  void judge(const Candidate& candidate, std::uint64_t count, Row& row);
  void find_exact(std::uint64_t count);

  const Options& options_;
  const World& world_;
  bool has_memory_ = false;
  std::vector<Candidate> candidates_;
  std::vector<float> in_, out_;
  std::vector<double> exact_;  // the sum of the first exact_.size() elements
};

}  // namespace slimpi::bench
