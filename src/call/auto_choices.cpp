// SPDX-License-Identifier: BSD-3-Clause
#include "call/auto_choices.h"

#include <fmt/core.h>

#include <algorithm>

namespace slimpi::call {

// Allocates nothing for a row that exists: every call of auto comes here.
AutoChoices::Row& AutoChoices::row_of(const Candidates& candidates, std::uint64_t bytes) {
  const std::size_t size_class = size_class_of(bytes);
  for (auto& [key, row] : rows_)
    if (key.size_class == size_class && key.candidates == candidates) return row;
  Row row;
  row.trials.resize(candidates.size());
  return rows_.emplace(Key{size_class, candidates}, std::move(row)).first->second;
}

void AutoChoices::add(const Candidates& candidates, std::uint64_t bytes, std::size_t which,
                      std::uint64_t nanoseconds) {
  const std::lock_guard lock(mutex_);
  Row::Trials& trials = row_of(candidates, bytes).trials[which];
  trials.least = trials.calls == 0 ? nanoseconds : std::min(trials.least, nanoseconds);
  ++trials.calls;
}

std::string AutoChoices::choose(const Candidates& candidates, std::uint64_t bytes,
                                std::size_t which) {
  const std::lock_guard lock(mutex_);
  Row& row = row_of(candidates, bytes);
  row.chosen = which;
  ++row.decisions;
  std::string tried;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    tried +=
        fmt::format("{}{} {:.3f} ms in {} calls", tried.empty() ? "" : ", ", candidates[i].name(),
                    double(row.trials[i].least) * 1e-6, row.trials[i].calls);
  return fmt::format("auto: {} is used for sums of about {} bytes (least times: {})",
                     candidates[which].name(), bytes, tried);
}

std::vector<AutoChoice> AutoChoices::rows() {
  const std::lock_guard lock(mutex_);
  std::vector<AutoChoice> all;
  for (const auto& [key, row] : rows_) {
    AutoChoice& one = all.emplace_back();
    one.from_bytes = 1ull << key.size_class;
    one.decisions = row.decisions;
    if (row.chosen) one.chosen = key.candidates[*row.chosen].name();
    for (std::size_t i = 0; i < row.trials.size(); ++i)
      one.candidates.push_back(
          {key.candidates[i].name(), row.trials[i].calls, row.trials[i].least});
  }
  return all;
}

}  // namespace slimpi::call
