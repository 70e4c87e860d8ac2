// SPDX-License-Identifier: BSD-3-Clause
// What is decided for the calls of one communicator. It depends on the size of a call only by the
// rows of the rules and by SLIMPI_MIN_SIZE, so all decisions are made before the ranks agree on
// their options, where a rank that has no memory can still say so. A decision that is found later
// allocates nothing: a rank that failed there would keep the others waiting inside MPI, if they
// leave that call to MPI.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "algorithm/policy.h"
#include "call/entry.h"
#include "comm/communicator.h"

namespace slimpi::call {

struct PreparedCall {
  algorithm::Decision decision;
  std::vector<const char*> candidates;  // MPI and the plans' algorithms; see observe/statistics.h
  int number = 0;                       // of the row
};

class PreparedCalls : public comm::Attachment {
 public:
  // Makes the decisions for the communicator called `name`. To be called each time before the ranks
  // compare their options.
  void prepare(const Config& config, const Rules& rules, const std::string& name);

  // The decision for a call of a type that slimpi sums, or for buffers of so many bytes; the same
  // on all ranks. Valid until prepare(). Allocates nothing and throws nothing.
  PreparedCall& find(const Allreduce& call) noexcept;
  PreparedCall& find(std::uint64_t bytes, ElementType type = ElementType::float32,
                     Collective collective = Collective::allreduce) noexcept;

 private:
  // The calls of one row of the rules: from min_size to max_size bytes, both included.
  struct Row {
    std::uint64_t min_size, max_size;
    std::array<PreparedCall, kCollectives> calls;
    std::shared_ptr<std::atomic<bool>> matched;  // the row's
  };

  std::uint64_t min_size_ = 0;  // bytes; SLIMPI_MIN_SIZE
  std::vector<Row> rows_;       // rows for this communicator, in order; the first that fits counts
  // For what no row fits; for less than min_size_; for types that would not become shorter.
  std::array<PreparedCall, kCollectives> other_;
  PreparedCall small_, short_;
};

}  // namespace slimpi::call
