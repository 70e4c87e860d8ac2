// SPDX-License-Identifier: BSD-3-Clause
// What the autotuner tried and chose, by size class: for the log and the report. Rank 0 of each
// communicator adds; any thread may.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/report.h"
#include "call/candidate.h"

namespace slimpi::call {

class AutoChoices {
 public:
  // Never destroyed: the report may be written by an exit handler.
  static AutoChoices& all() {
    static auto* const choices = new AutoChoices;
    return *choices;
  }

  // One call of `bytes` bytes with candidates[which].
  void add(const Candidates& candidates, std::uint64_t bytes, std::size_t which,
           std::uint64_t nanoseconds);

  // candidates[which] won. Returns the line for the log.
  std::string choose(const Candidates& candidates, std::uint64_t bytes, std::size_t which);

  std::vector<AutoChoice> rows();

 private:
  struct Key {
    std::size_t size_class;
    Candidates candidates;
    auto operator<=>(const Key&) const = default;
  };
  struct Row {
    struct Trials {
      std::uint64_t calls = 0, least = 0;  // least: nanoseconds of the fastest call
    };
    std::vector<Trials> trials;  // of each candidate
    std::uint64_t decisions = 0;
    std::optional<std::size_t> chosen;  // empty while candidates are on trial
  };
  Row& row_of(const Candidates& candidates, std::uint64_t bytes);

  std::mutex mutex_;  // protects rows_
  std::map<Key, Row> rows_;
};

}  // namespace slimpi::call
