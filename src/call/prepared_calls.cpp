// SPDX-License-Identifier: BSD-3-Clause
#include "call/prepared_calls.h"

#include <utility>

#include "base/exceptions.h"

namespace slimpi::call {

namespace {

PreparedCall prepared(const Config& config, const policy::Rule* rule) {
  PreparedCall call;
  call.decision = policy::decide(config, rule);
  call.candidates.push_back(Candidate::mpi());
  for (const comm::Plan& plan : call.decision.plans)
    call.candidates.push_back(Candidate::algorithm(plan.algorithm->id));
  if (call.decision.plans.size() > 1) call.autotuners.resize(2 * PreparedCall::kSizeClasses);
  return call;
}

}  // namespace

Status PreparedCall::autotuner(comm::Communicator& communicator, std::size_t size_class,
                               comm::Autotuner** found) {
  auto& known = autotuners[size_class];
  if (!known) {
    std::unique_ptr<comm::Autotuner> made;
    bool all = false;
    SLIMPI_TRY(communicator.agree_on_made(
        caught([&] { made = std::make_unique<comm::Autotuner>(int(candidates.size())); }), &all));
    if (!all) made.reset();
    known = std::move(made);
  }
  *found = known->get();
  return Status::ok;
}

void PreparedCalls::prepare(const Config& config, const policy::Rules& rules,
                            const std::string& name) {
  min_size_ = config.min_size;
  small_.decision.reason = BypassReason::small;
  rows_.clear();
  for (const policy::Rule& rule : rules)
    if (policy::is_for(rule, name))
      rows_.push_back({rule.min_size, rule.max_size, prepared(config, &rule)});
  other_ = prepared(config, nullptr);
}

PreparedCall& PreparedCalls::find(std::uint64_t bytes) noexcept {
  if (bytes < min_size_) return small_;
  for (Row& row : rows_)
    if (bytes >= row.min_size && bytes <= row.max_size) return row.call;
  return other_;
}

}  // namespace slimpi::call
