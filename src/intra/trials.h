// SPDX-License-Identifier: BSD-3-Clause
// Which of several ways does the calls of one size class fastest. All give the same bytes. Which is
// fastest depends on the size, the caches, the kernel and the link, so the program's own calls are
// timed: some of each way in a row, and again after kSettled calls.
//
// All ranks of the node make the same trials at the same calls, because all count every call. Each
// rank judges by its own times, so the ranks may judge differently; the callers say what then
// happens.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace slimpi::intra {

enum class Way : std::uint8_t {
  // Through message buffers. These are written with the stores that CacheLocality suggests, or with
  // these stores.
  buffers,
  buffers_ordinary,
  buffers_non_temporal,
  in_place,  // reading other ranks' buffers
  pieces,    // in pieces, during the exchange between nodes
  at_once,   // before and after that exchange
};
inline constexpr int kWays = 6;

// Calls of one way in a row.
struct TrialRow {
  Way way;
  int calls;
  int uncounted;  // the first of these: they may contain set-up costs, or find other caches
  // This way must take less than this share of the time of the first row's way. A rank that waits
  // for others measures their time, so near-ties keep the first.
  double faster = 1;
};

struct TrialRule {
  std::span<const TrialRow> rows;
  Way if_untimed;  // used where a series has no time of the first row's way
};

// CacheLocality compares a latency with a constant. On a processor where that misleads, the other
// stores win by much more than a fifth. The second row of `buffers` is for machines whose cores
// move: what made the other ways faster meanwhile makes this one faster, too. After a change of the
// stores, three calls do not count, one for each of the longest message buffers: each was last
// written by the other stores. Of short ones there are more, so these trials find less.
inline constexpr TrialRow kStoreRows[] = {{Way::buffers, 4, 1},
                                          {Way::buffers_ordinary, 5, 3, 0.8},
                                          {Way::buffers_non_temporal, 5, 3, 0.8},
                                          {Way::buffers, 5, 3}};
inline constexpr TrialRow kCopyRows[] = {{Way::buffers, 4, 1},
                                         {Way::in_place, 4, 1, 0.9},
                                         {Way::buffers_ordinary, 5, 3, 0.8},
                                         {Way::buffers_non_temporal, 5, 3, 0.8},
                                         {Way::buffers, 5, 3}};
inline constexpr TrialRow kOverlapRows[] = {{Way::pieces, 3, 1}, {Way::at_once, 2, 0, 0.95}};

inline constexpr TrialRule kStoreTrials = {kStoreRows, Way::buffers};
inline constexpr TrialRule kCopyTrials = {kCopyRows, Way::buffers};
// The pieces hide the work behind the link; at once it copies faster.
inline constexpr TrialRule kOverlapTrials = {kOverlapRows, Way::at_once};

class Trials {
 public:
  explicit Trials(const TrialRule& rule) : rule_(rule) {}

  static constexpr int kSettled = 1000;  // calls between two series of trials

  // Counts a call; the way that it goes.
  Way next() {
    if (!trial() && ++settled_ > kSettled) *this = Trials(rule_);
    if (trial() && ++call_ == rule_.rows[row_].calls) {
      call_ = 0;
      if (++row_ == rule_.rows.size()) settle();
    }
    return way();
  }

  // Of the current call: whether it is a trial, and the way that it goes.
  bool trial() const { return row_ < rule_.rows.size(); }
  Way way() const { return trial() ? rule_.rows[row_].way : fastest_; }

  // Nanoseconds of the current call, and the way that they count for. Ignored unless the call is a
  // trial.
  void record(std::uint64_t nanoseconds, Way counts_for) {
    if (!trial() || call_ < rule_.rows[row_].uncounted) return;
    std::uint64_t& least = least_[std::size_t(counts_for)];
    least = std::min(least, nanoseconds);
  }

  // The ranks of the node judged differently: the first way, until the next trials.
  void disagreed() { fastest_ = rule_.rows[0].way; }

 private:
  void settle() {
    settled_ = 1;
    const auto time = [this](Way way) { return double(least_[std::size_t(way)]); };
    fastest_ = rule_.rows[0].way;
    const double first = time(fastest_);
    if (least_[std::size_t(fastest_)] == UINT64_MAX) {
      fastest_ = rule_.if_untimed;
      return;
    }
    for (const TrialRow& row : rule_.rows)
      if (time(row.way) < std::min(row.faster * first, time(fastest_))) fastest_ = row.way;
  }

  TrialRule rule_;
  std::size_t row_ = 0;  // of the current call; behind the last row: no trial
  int call_ = -1;        // number of the current call in its row, from 0
  int settled_ = 0;      // calls since the last trial
  Way fastest_ = rule_.rows[0].way;
  std::array<std::uint64_t, kWays> least_ = filled(UINT64_MAX);  // nanoseconds

  static constexpr std::array<std::uint64_t, kWays> filled(std::uint64_t value) {
    std::array<std::uint64_t, kWays> all{};
    all.fill(value);
    return all;
  }
};

}  // namespace slimpi::intra
