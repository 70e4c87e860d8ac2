// SPDX-License-Identifier: BSD-3-Clause
// What is decided for the calls of one communicator. It depends on the size of a call only by the
// rows of the rules and by SLIMPI_MIN_SIZE, so all decisions are made before the ranks agree on
// their options, where a rank that has no memory can still say so. A decision that is found later
// allocates nothing: a rank that failed there would keep the others waiting inside MPI, if they
// leave that call to MPI.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "call/candidate.h"
#include "comm/attachment.h"
#include "comm/autotuner.h"
#include "comm/communicator.h"
#include "policy/policy.h"

namespace slimpi::call {

struct PreparedCall {
  policy::Decision decision;
  Candidates candidates;  // MPI and the plans' algorithms

  // The autotuner of several plans for counts with so many bits, with kSizeClasses added for
  // doubles; null where some rank could not make it. The ranks make it together at the first call,
  // because later calls may go to MPI on all of them without a message. It is collective then.
  Status autotuner(comm::Communicator& communicator, std::size_t size_class,
                   comm::Autotuner** found);

  static constexpr std::size_t kSizeClasses = 65;  // bits of a count
  // By size class. Empty: not made yet; null: some rank could not make it.
  std::vector<std::optional<std::unique_ptr<comm::Autotuner>>> autotuners;
};

class PreparedCalls : public comm::Attachment {
 public:
  // Makes the decisions for the communicator called `name`. To be called each time before the ranks
  // compare their options.
  void prepare(const Config& config, const policy::Rules& rules, const std::string& name);

  // The decision for buffers of so many bytes; the same on all ranks. Valid until prepare().
  // Allocates nothing and throws nothing.
  PreparedCall& find(std::uint64_t bytes) noexcept;

 private:
  // The calls of one row of the rules: from min_size to max_size bytes, both included.
  struct Row {
    std::uint64_t min_size, max_size;
    PreparedCall call;
  };

  std::uint64_t min_size_ = 0;  // bytes; SLIMPI_MIN_SIZE
  std::vector<Row> rows_;       // those for this communicator, in order; the first that fits counts
  PreparedCall small_, other_;  // for less than min_size_; for what no row fits
};

}  // namespace slimpi::call
