// SPDX-License-Identifier: BSD-3-Clause
#include "call/prepared_calls.h"

namespace slimpi::call {

namespace {

PreparedCall prepare(const Config& config, const policy::Rules& rules, const std::string& name,
                     std::uint64_t count) {
  PreparedCall call;
  call.decision = policy::decide(config, rules, name, count);
  call.candidates.emplace_back("mpi");
  for (const comm::Plan& plan : call.decision.plans)
    call.candidates.emplace_back(plan.algorithm->name);
  return call;
}

PreparedCall too_small() {
  PreparedCall call;
  call.decision.reason = BypassReason::small;
  return call;
}

}  // namespace

const PreparedCall& PreparedCalls::find(const Config& config, const policy::Rules& rules,
                                        const std::string& name, std::uint64_t count) {
  static const PreparedCall& small = *new PreparedCall(too_small());
  if (count * sizeof(float) < config.min_size) return small;
  if (const auto found = by_count_.find(count); found != by_count_.end()) return found->second;
  PreparedCall made = prepare(config, rules, name, count);
  if (by_count_.size() == kMost) by_count_.clear();
  return by_count_.emplace(count, std::move(made)).first->second;
}

}  // namespace slimpi::call
