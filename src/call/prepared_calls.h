// SPDX-License-Identifier: BSD-3-Clause
// What is decided once for all calls of one size on a communicator. A call that finds its decision
// here allocates nothing for it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "comm/attachment.h"
#include "policy/policy.h"

namespace slimpi::call {

struct PreparedCall {
  policy::Decision decision;
  std::vector<std::string> candidates;  // "mpi" and the plans' algorithms, as the report names them
};

class PreparedCalls : public comm::Attachment {
 public:
  // The decision for sums of `count` floats; the same on all ranks. Valid until the next call of
  // find(), and until the options change.
  const PreparedCall& find(const Config& config, const policy::Rules& rules,
                           const std::string& name, std::uint64_t count);

  void options_changed() override { by_count_.clear(); }

 private:
  // More sizes than a program sums in turn. Beyond it all are prepared anew.
  static constexpr std::size_t kMost = 4096;

  // Of the sums that are not too small.
  std::map<std::uint64_t, PreparedCall> by_count_;
};

}  // namespace slimpi::call
