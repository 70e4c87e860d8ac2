// SPDX-License-Identifier: BSD-3-Clause
#include "call/prepared_calls.h"

#include <algorithm>

#include "call/element_type.h"

namespace slimpi::call {

namespace {

std::array<PreparedCall, kCollectives> prepared(const Config& config, const Rule* rule,
                                                std::size_t number) {
  std::array<PreparedCall, kCollectives> calls;
  for (int collective = 0; collective < kCollectives; ++collective) {
    PreparedCall& call = calls[std::size_t(collective)];
    call.decision = algorithm::decide(config, rule, Collective(collective));
    call.candidates.push_back("mpi");
    for (const comm::Plan& plan : call.decision.plans)
      call.candidates.push_back(plan.algorithm->name);
    call.number = int(number);
  }
  return calls;
}

}  // namespace

void PreparedCalls::prepare(const Config& config, const Rules& rules, const std::string& name) {
  min_size_ = config.min_size;
  small_.decision.reason = BypassReason::small;
  short_.decision.reason = BypassReason::datatype;
  rows_.clear();
  for (const Rule& rule : rules)
    if (is_for(rule, name))
      rows_.push_back(
          {rule.min_size, rule.max_size, prepared(config, &rule, rows_.size()), rule.matched});
  other_ = prepared(config, nullptr, rows_.size());
}

PreparedCall& PreparedCalls::find(const Allreduce& call) noexcept {
  return find(bytes_of(call), type_of(call), call.collective);
}

PreparedCall& PreparedCalls::find(std::uint64_t bytes, ElementType type,
                                  Collective collective) noexcept {
  if (bytes < min_size_) return small_;
  const auto row = std::find_if(rows_.begin(), rows_.end(), [bytes](const Row& each) {
    return bytes >= each.min_size && bytes <= each.max_size;
  });
  if (row != rows_.end()) row->matched->store(true, std::memory_order_relaxed);
  PreparedCall& found = (row == rows_.end() ? other_ : row->calls)[std::size_t(collective)];
  if (type == ElementType::float32 || !found.decision.take) return found;
  return algorithm::shortens(found.decision, int(8 * row_of(type).bytes)) ? found : short_;
}

}  // namespace slimpi::call
