// SPDX-License-Identifier: BSD-3-Clause
#include "call/autotuner_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace slimpi::call {

// Allocates nothing for a row that exists: every call of auto comes here.
AutoChoice& AutoChoices::row_of(Candidates candidates, std::uint64_t bytes) {
  const std::uint64_t from = std::uint64_t(1) << size_class_of(bytes);
  const auto has_name = [](const AutoChoice::Candidate& one, const char* name) {
    return one.name == name;
  };
  for (AutoChoice& row : rows_)
    if (row.from_bytes == from && std::equal(row.candidates.begin(), row.candidates.end(),
                                             candidates.begin(), candidates.end(), has_name))
      return row;
  AutoChoice row;
  row.from_bytes = from;
  for (const char* const name : candidates) row.candidates.push_back({name, 0, 0});
  return rows_.emplace_back(std::move(row));
}

void AutoChoices::add(Candidates candidates, std::uint64_t bytes, std::size_t which,
                      std::uint64_t nanoseconds) {
  const std::lock_guard lock(mutex_);
  AutoChoice::Candidate& tried = row_of(candidates, bytes).candidates[which];
  tried.least = tried.calls == 0 ? nanoseconds : std::min(tried.least, nanoseconds);
  ++tried.calls;
}

std::string AutoChoices::choose(Candidates candidates, std::uint64_t bytes, std::size_t which) {
  const std::lock_guard lock(mutex_);
  AutoChoice& row = row_of(candidates, bytes);
  row.chosen = candidates[which];
  ++row.decisions;
  std::string tried;
  for (const AutoChoice::Candidate& one : row.candidates)
    tried += fmt::format("{}{} {:.3f} ms in {} calls", tried.empty() ? "" : ", ", one.name,
                         double(one.least) * 1e-6, one.calls);
  return fmt::format("auto: {} is used for sums of about {} bytes (least times: {})", row.chosen,
                     bytes, tried);
}

std::vector<AutoChoice> AutoChoices::rows() {
  std::unique_lock lock(mutex_);
  std::vector<AutoChoice> all = rows_;
  lock.unlock();
  std::stable_sort(all.begin(), all.end(), [](const AutoChoice& a, const AutoChoice& b) {
    return a.from_bytes < b.from_bytes;
  });
  return all;
}

}  // namespace slimpi::call
