// SPDX-License-Identifier: BSD-3-Clause
#include "call/auto_choices.h"

#include <fmt/format.h>

#include <algorithm>

namespace slimpi::call {

namespace {

// Allocates nothing for a row that exists: every call of auto comes here.
AutoChoice& row_of(std::map<std::pair<std::size_t, std::vector<std::string>>, AutoChoice>& rows,
                   const std::vector<std::string>& names, std::uint64_t bytes) {
  const std::size_t size_class = size_class_of(bytes);
  for (auto& [key, row] : rows)
    if (key.first == size_class && key.second == names) return row;
  AutoChoice& row = rows[{size_class, names}];
  row.from_bytes = 1ull << size_class;
  for (const std::string& name : names) row.candidates.push_back({name, 0, 0});
  return row;
}

}  // namespace

void AutoChoices::add(const std::vector<std::string>& names, std::uint64_t bytes, std::size_t which,
                      std::uint64_t nanoseconds) {
  const std::lock_guard lock(mutex_);
  AutoChoice::Candidate& candidate = row_of(rows_, names, bytes).candidates[which];
  candidate.least = candidate.calls == 0 ? nanoseconds : std::min(candidate.least, nanoseconds);
  ++candidate.calls;
}

std::string AutoChoices::choose(const std::vector<std::string>& names, std::uint64_t bytes,
                                std::size_t which) {
  const std::lock_guard lock(mutex_);
  AutoChoice& row = row_of(rows_, names, bytes);
  row.chosen = names[which];
  ++row.decisions;
  std::string tried;
  for (const AutoChoice::Candidate& each : row.candidates)
    tried += fmt::format("{}{} {:.3f} ms in {} calls", tried.empty() ? "" : ", ", each.name,
                         double(each.least) * 1e-6, each.calls);
  return fmt::format("auto: {} is used for sums of about {} bytes (least times: {})", row.chosen,
                     bytes, tried);
}

std::vector<AutoChoice> AutoChoices::rows() {
  const std::lock_guard lock(mutex_);
  std::vector<AutoChoice> all;
  for (const auto& [key, row] : rows_) all.push_back(row);
  return all;
}

}  // namespace slimpi::call
