// SPDX-License-Identifier: BSD-3-Clause
// Before the first sum of a communicator its ranks compare their options, and name the first one
// that differs. Collective: every rank makes the same steps here, whatever its own values are.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/exceptions.h"
#include "base/fiber.h"
#include "base/hash.h"
#include "comm/communicator.h"
#include "device/foreign.h"

namespace slimpi::comm {

namespace {

// One item that must be equal on all ranks: the value that is compared, and its text as written.
struct Entry {
  std::string name, value, text;
};

std::uint64_t hash(std::string_view text) {
  Fnv1a hash;
  hash.add(text);
  return hash.value();
}

std::vector<Entry> entries_to_agree(const Config& config, const std::string& rules) {
  constexpr const char* kVersion = SLIMPI_PACKAGE_VERSION;
  // First, because ranks with another version may have other rows.
  std::vector<Entry> entries = {{"the version of slimpi", kVersion, kVersion}};
  const auto& rows = option_rows();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].scope == Scope::agree || rows[i].scope == Scope::job) {
      // The case of letters counts in paths and in rules (below), and in nothing else.
      const std::string& text = config.given[i].text;
      const std::string published = text.find(":/") != text.npos ? text : lower_case(text);
      entries.push_back({rows[i].variable, config.value_text(Option(i)),
                         published.empty() ? "(unset)" : published});
    }
  entries.push_back({"SLIMPI_RULES", rules, rules.empty() ? "(no rule)" : rules});
  return entries;
}

}  // namespace

Status Communicator::agree(const std::string& rules) {
  if (exchange_comm_ == mpi::abi.comm_null) SLIMPI_TRY(make_exchange_comm());

  // Reduces the maximum of each hash and of its complement. All ranks have the same value exactly
  // if the two maxima are complements of each other.
  const std::vector<Entry> entries = entries_to_agree(config_, rules);
  std::vector<std::uint64_t> sums;
  for (const Entry& entry : entries) {
    sums.push_back(hash(entry.value));
    sums.push_back(~hash(entry.value));
  }
  // Travel with the options, which saves a reduction of their own.
  sums.push_back(changed_ ? 1 : 0);
  int level = 0;
  const bool threaded =
      api_.Query_thread(&level) == mpi::kSuccess && level == mpi::abi.thread_multiple;
  sums.push_back(threaded ? 0 : 1);
  sums.push_back(device::foreign_possible() ? 1 : 0);
  SLIMPI_TRY(exchange_.all_max(sums));
  foreign_possible_ = sums.back() != 0;
  threaded_ = sums[sums.size() - 2] == 0;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (sums[2 * i] != ~sums[2 * i + 1])
      return describe_disagreement(entries[i].name, entries[i].value, entries[i].text,
                                   "start all ranks with the same value");
  // A change on one rank that leads to the values of the others is a change on all of them.
  if (sums[2 * entries.size()] != 0) start_anew();
  agreed_.store(true, std::memory_order_release);
  connecting_.store(false, std::memory_order_release);  // last: see compares_types()
  return Status::ok;
}

Status Communicator::describe_disagreement(const std::string& name, const std::string& value,
                                           const std::string& text, const std::string& remedy) {
  struct Value {
    std::uint64_t hash;
    char text[120];
  };
  Value mine{hash(value), ""};
  std::strncpy(mine.text, text.c_str(), sizeof mine.text - 1);
  std::vector<Value> values;
  bool memory = caught([&] { values.resize(std::size_t(size_)); }) == Status::ok;
  SLIMPI_TRY(exchange_.all_true(&memory));
  if (!memory) {
    char line[256];
    std::snprintf(line, sizeof line,
                  "%s differs between the ranks of a communicator, and some rank has no memory to "
                  "compare the values; %s",
                  name.c_str(), remedy.c_str());
    return exchange_.publish_disagreement(fail(Status::disagreement, line));
  }
  // Blocking is safe here: all ranks have agreed to come.
  int code = mpi::kSuccess;
  call_blocking([&] {
    code = api_.Allgather(&mine, int(sizeof mine), mpi::abi.type_char, values.data(),
                          int(sizeof mine), mpi::abi.type_char, exchange_comm_);
  });
  if (code != mpi::kSuccess) return fail(Status::mpi, mpi::error_text(api_, code));
  // The first rank that differs from rank 0. All ranks have the same list, so all name the same
  // two.
  std::size_t other = 0;
  while (other + 1 < values.size() && values[other].hash == values[0].hash) ++other;
  const Status status = fail(
      Status::disagreement,
      name + " differs between the ranks of a communicator: " + values[0].text + " on rank 0, " +
          values[other].text + " on rank " + std::to_string(other) + "; " + remedy);
  return exchange_.publish_disagreement(status);
}

}  // namespace slimpi::comm
