// SPDX-License-Identifier: BSD-3-Clause
// The decisions for the calls of one communicator, and the functions that run a call by its
// decision. A decision names one or several plans (algorithm, codec, hierarchy). With several, the
// autotuner times the program's calls to find the fastest of these plans and of MPI's own sum.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "algorithm/policy.h"
#include "call/request.h"
#include "call/runtime.h"
#include "comm/communicator.h"

namespace slimpi::call {

// The decisions of one communicator. The size of a call matters only where SLIMPI_MIN_SIZE or a row
// of the rules (an algorithm for a range of sizes) says so, which is why prepare() can make all
// decisions in advance. find() then need not allocate, so it cannot fail on one rank while the
// other ranks leave the call to MPI and wait there.
class Decisions : public comm::Attachment {
 public:
  // Makes the decisions for the communicator called `name`. Called whenever the ranks are about to
  // compare their options.
  void prepare(const Config& config, const Rules& rules, const std::string& name);

  // Return the decision for a call, or for a call of `bytes` bytes. The reference is valid until
  // the next prepare(), and the decision is the same on all ranks. slimpi must be able to sum the
  // type.
  const algorithm::Decision& find(const Request& request) noexcept;
  const algorithm::Decision& find(std::uint64_t bytes, ElementType type = ElementType::float32,
                                  Collective collective = Collective::allreduce) noexcept;

  // Decisions by the type of elements and, for each type, by collective.
  using ByCall = std::array<algorithm::Decision, std::size_t(kElementTypes) * kCollectives>;

 private:
  // The decisions for one row of the rules: for calls of min_size to max_size bytes, both included.
  struct Row {
    std::uint64_t min_size, max_size;
    ByCall decisions;
    std::shared_ptr<std::atomic<bool>> matched;  // Rule::matched: a call has used the row
  };

  std::uint64_t min_size_ = 0;  // bytes; SLIMPI_MIN_SIZE
  std::vector<Row> rows_;       // the first row that matches the size decides
  ByCall other_;                // for calls that no row matches
  algorithm::Decision small_;   // for calls of less than min_size_
};

// Reads the clock that times candidates, in nanoseconds. Unit tests replace it.
extern std::uint64_t (*candidate_clock)();

// Runs a call between nodes with SLIMPI_ALGORITHM=auto, by MPI or under a plan, as the autotuner
// chooses.
Outcome run_fastest(Runtime& runtime, comm::Communicator& communicator,
                    const algorithm::Decision& decision, const Request& request);

// Runs a call under a plan or, if all ranks share one node, adds the values there without
// compression. Leaves the call to MPI if the ranks agree that slimpi cannot run it (a fallback).
// *verifying, unless null, is set to the nanoseconds that SLIMPI_VERIFY and SLIMPI_SELFTEST took.
Outcome run_plan(Runtime& runtime, comm::Communicator& communicator, const comm::Plan& plan,
                 const Request& request, std::uint64_t* verifying = nullptr);

}  // namespace slimpi::call
