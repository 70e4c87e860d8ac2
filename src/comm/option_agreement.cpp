// SPDX-License-Identifier: BSD-3-Clause
// Before the first sum of a communicator its ranks compare their options, and name the first one
// that differs. Collective: every rank makes the same steps here, whatever its own values are.
#include <algorithm>
#include <string>
#include <vector>

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
  if (!connected()) SLIMPI_TRY(make_internal_comm());

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
  exchange_.set_timeout(std::chrono::seconds(config_.timeout.value_or(0)));
  SLIMPI_TRY(compare_sums());
  agreed_.store(true, std::memory_order_release);
  return Status::ok;
}

// Ranks may know at different times that all have agreed. So a sum is decided where it begins only
// if no rank began it earlier than that: the ranks compare how many each has begun. From the moment
// at which a rank says its number until it knows the others', it begins none.
Status Communicator::compare_sums() {
  std::uint64_t last = 0;
  comparing_.store(true, std::memory_order_release);
  last = begun_;
  const Status status = exchange_.all_max({&last, 1});
  undecided_ = last;
  comparing_.store(false, std::memory_order_release);
  return status;
}

// Two texts are shared: that of rank 0, and that of the first rank with another value.
Status Communicator::describe_disagreement(const std::string& name, const std::string& value,
                                           const std::string& text, const std::string& remedy) {
  const std::uint64_t own = hash(value) >> 1;
  std::uint64_t of_first = rank_ == 0 ? own : 0;
  SLIMPI_TRY(exchange_.all_max({&of_first, 1}));
  std::uint64_t differs = own == of_first ? 0 : std::uint64_t(size_ - rank_);
  SLIMPI_TRY(exchange_.all_max({&differs, 1}));
  const int other = size_ - int(std::max<std::uint64_t>(differs, 1));
  char texts[2][120] = {};
  if (rank_ == 0 || rank_ == other) text.copy(texts[rank_ == 0 ? 0 : 1], sizeof texts[0] - 1);
  SLIMPI_TRY(exchange_.share_texts({texts[0], sizeof texts}));
  return exchange_.publish_disagreement(fail(
      Status::disagreement, name + " differs between the ranks of a communicator: " + texts[0] +
                                " on rank 0, " + texts[1] + " on rank " + std::to_string(other) +
                                "; " + remedy));
}

}  // namespace slimpi::comm
