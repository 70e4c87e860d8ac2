// SPDX-License-Identifier: BSD-3-Clause
#include "call/prepared_calls.h"

#include <utility>

#include "base/exceptions.h"

namespace slimpi::call {

namespace {

PreparedCall prepared(const Config& config, const policy::Rule* rule, std::size_t number) {
  PreparedCall call;
  call.decision = policy::decide(config, rule);
  call.candidates.push_back("mpi");
  for (const comm::Plan& plan : call.decision.plans)
    call.candidates.push_back(plan.algorithm->name);
  call.number = int(number);
  return call;
}

}  // namespace

void PreparedCalls::prepare(const Config& config, const policy::Rules& rules,
                            const std::string& name) {
  min_size_ = config.min_size;
  small_.decision.reason = BypassReason::small;
  rows_.clear();
  for (const policy::Rule& rule : rules)
    if (policy::is_for(rule, name))
      rows_.push_back({rule.min_size, rule.max_size, prepared(config, &rule, rows_.size())});
  other_ = prepared(config, nullptr, rows_.size());
}

PreparedCall& PreparedCalls::find(std::uint64_t bytes) noexcept {
  if (bytes < min_size_) return small_;
  for (Row& row : rows_)
    if (bytes >= row.min_size && bytes <= row.max_size) return row.call;
  return other_;
}

}  // namespace slimpi::call
