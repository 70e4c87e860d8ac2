// SPDX-License-Identifier: BSD-3-Clause
// What the autotuner tried and chose, by size class: for the log and the report. Rank 0 of each
// communicator adds; any thread may.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/report.h"

namespace slimpi::call {

class AutoChoices {
 public:
  // Never destroyed: the report may be written by an exit handler.
  static AutoChoices& all() {
    static auto* const choices = new AutoChoices;
    return *choices;
  }

  // One call of `bytes` bytes with the candidate names[which].
  void add(const std::vector<std::string>& names, std::uint64_t bytes, std::size_t which,
           std::uint64_t nanoseconds);

  // The candidates names[which] won. Returns the line for the log.
  std::string choose(const std::vector<std::string>& names, std::uint64_t bytes, std::size_t which);

  std::vector<AutoChoice> rows();

 private:
  using Key = std::pair<std::size_t, std::vector<std::string>>;  // size class and candidates
  std::mutex mutex_;                                             // protects rows_
  std::map<Key, AutoChoice> rows_;
};

}  // namespace slimpi::call
