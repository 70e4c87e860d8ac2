// SPDX-License-Identifier: BSD-3-Clause
// The counts of a process: atomic counters, which calls of any thread increase, and plain copies of
// them, which reports are made from.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "observe/trace.h"
#include "options/option_types.h"

namespace slimpi {

// The reason why a call went to MPI unchanged (a bypass).
enum class BypassReason {
#define SLIMPI_BYPASS_REASON(reason, name, meaning, advice) reason,
#include "observe/bypass_reasons.def"
};

struct BypassRow {
  const char* name;  // in the report
  const char* text;  // "left to MPI: NAME", in estimates and traces
  const char* meaning;
  const char* advice;  // what to do if most calls have this reason
};

// The rows, in the order of the enumerators.
inline constexpr BypassRow kBypassRows[] = {
#define SLIMPI_BYPASS_REASON(reason, name, meaning, advice) \
  {name, "left to MPI: " name, meaning, advice},
#include "observe/bypass_reasons.def"
};
inline constexpr std::size_t kBypassReasons = std::size(kBypassRows);

constexpr const BypassRow& row_of(BypassReason reason) {
  return kBypassRows[std::size_t(reason)];
}
constexpr const char* to_string(BypassReason reason) {
  return row_of(reason).name;
}

// The codec of a compressed call, as a number. comm/call.h has the numbers and names.
enum class UsedCodec : std::size_t {};
constexpr std::size_t kMostCodecs = 24;

// The number of size classes. Compressed calls are counted by algorithm, by codec and by size
// class, where class k has the buffers of 2^k to 2^(k+1) - 1 bytes, and the last class also all
// larger ones.
constexpr std::size_t kSizeClasses = 44;
std::size_t size_class_of(std::uint64_t bytes);

// The compressed calls of one algorithm, codec, size class, type or collective.
struct Share {
  std::uint64_t calls = 0;
  std::uint64_t bytes_in = 0, bytes_sent = 0;  // as in Counts
  std::uint64_t nanoseconds = 0;
};

// How far a sum is from the exact sum, in numbers that can be added up over sums.
struct Deviation {
  double error = 0, exact = 0;  // sums of squares
  // `nonzero` counts the values of the exact sum that are not 0. `zeros` and `wrong_signs` count
  // those of them that are 0, or have the other sign, in the result.
  std::uint64_t nonzero = 0, zeros = 0, wrong_signs = 0;

  // Returns the squared error divided by the squared L2 norm of the exact sum, or just the squared
  // error if this norm is 0.
  double vnmse() const { return exact > 0 ? error / exact : error; }
  double relative_l2() const { return std::sqrt(vnmse()); }
};

// Returns the deviation of `result` from `exact`, each of floats or doubles.
template <typename Result, typename Exact>
Deviation deviation_of(const Result* result, const Exact* exact, std::uint64_t count) {
  Deviation all;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double value = double(exact[i]), got = double(result[i]), off = got - value;
    all.error += off * off;
    all.exact += value * value;
    all.nonzero += value != 0;
    all.zeros += value != 0 && got == 0;
    all.wrong_signs += (value < 0 && got > 0) || (value > 0 && got < 0);
  }
  return all;
}

// The errors that SLIMPI_VERIFY has measured, added up over calls.
struct VerifiedErrors {
  std::uint64_t checked = 0;                                // calls
  double relative_l2 = 0, most_relative_l2 = 0, vnmse = 0;  // sum, maximum, sum
  std::uint64_t nonzero = 0, zeros = 0, wrong_signs = 0;    // values, as in Deviation

  void add(const VerifiedErrors& more) {
    checked += more.checked;
    relative_l2 += more.relative_l2;
    most_relative_l2 = std::max(most_relative_l2, more.most_relative_l2);
    vnmse += more.vnmse;
    nonzero += more.nonzero;
    zeros += more.zeros;
    wrong_signs += more.wrong_signs;
  }
  // Returns the mean per checked call, given the sum over these calls, or 0 if no call was checked.
  double mean(double sum) const { return checked == 0 ? 0 : sum / double(checked); }
  // Returns `values` as a share, 0 to 1, of the values that are not 0 in the exact sums.
  double share(std::uint64_t values) const {
    return nonzero == 0 ? 0 : double(values) / double(nonzero);
  }
};

struct CompressedCall {
  AlgorithmId algorithm;
  UsedCodec codec;
  ElementType type = ElementType::float32;
  Collective collective = Collective::allreduce;
  std::uint64_t bytes = 0;        // bytes of the buffer
  std::uint64_t plain_bytes = 0;  // as Counts::bytes_plain
  std::uint64_t sent_bytes = 0;   // between nodes by this rank, headers included
  std::uint64_t nanoseconds = 0;
  bool on_device = false;
};

// The counters of counters.def, and arrays of such counters. All members are 64-bit words, so that
// the ranks add them with one reduction.
struct Counts {
#define SLIMPI_COUNTER(name, key, whose, api) std::uint64_t name = 0;
#include "observe/counters.def"
  std::array<std::uint64_t, kBypassReasons> bypassed{};
  std::array<Share, kAlgorithms> algorithms{};
  std::array<Share, kMostCodecs> codecs{};
  std::array<Share, kSizeClasses> sizes{};
  std::array<Share, kElementTypes> types{};
  std::array<Share, kCollectives> collectives{};
};
constexpr std::size_t kCounts = sizeof(Counts) / sizeof(std::uint64_t);

// Identifies a number of Counts.
using Counter = std::uint64_t Counts::*;

// The stages of a compressed call whose time is counted.
struct Stage {
  static constexpr Counter encode = &Counts::encode_nanoseconds;
  static constexpr Counter exchange = &Counts::exchange_nanoseconds;
  static constexpr Counter decode = &Counts::decode_nanoseconds;
  static constexpr Counter intra = &Counts::intra_nanoseconds;
};

// The names of the autotuner's candidates: "mpi", which is MPI's own sum, or an algorithm of slimpi
// between nodes.
using Candidates = std::span<const char* const>;

// The trials of the autotuner for buffers of from_bytes to 2 * from_bytes - 1 bytes, and its last
// choice. The autotuner times candidates, which are ways to run a call, and chooses the fastest.
struct AutoChoice {
  struct Candidate {
    std::string name;
    std::uint64_t calls, least;  // least: of the fastest call, in nanoseconds
  };
  std::uint64_t from_bytes = 0, decisions = 0;
  std::string chosen;  // "" while candidates are on trial
  std::vector<Candidate> candidates;
};

// The choices of all autotuners. Rank 0 of each communicator adds to them, in any thread.
class AutoChoices {
 public:
  // Adds one call of `bytes` bytes by candidates[which].
  void add(Candidates candidates, std::uint64_t bytes, std::size_t which,
           std::uint64_t nanoseconds);
  // Records that candidates[which] won the trials. Returns the line for the log.
  std::string choose(Candidates candidates, std::uint64_t bytes, std::size_t which);
  // Returns the rows, by size.
  std::vector<AutoChoice> rows() const;

 private:
  AutoChoice& choice_of(Candidates candidates, std::uint64_t bytes);

  mutable std::mutex mutex_;  // protects rows_
  std::vector<AutoChoice> rows_;
};

class Statistics {
 public:
  void bypassed(BypassReason reason) { add(counts_.bypassed[std::size_t(reason)]); }
  void compressed(const CompressedCall& call);
  void count(Counter number, std::uint64_t amount = 1) { add(counts_.*number, amount); }
  // Adds the error of a call whose buffer has `bytes` bytes.
  void error(std::uint64_t bytes, const Deviation& deviation);
  // Count memory that is held from now on or, if the number is negative, memory that is no longer
  // held.
  void scratch(std::int64_t bytes_more) {
    hold(counts_.scratch_bytes, counts_.most_scratch, bytes_more);
  }
  void segment(std::int64_t more, std::int64_t bytes_more) {
    hold(counts_.segments, counts_.most_segments, more);
    hold(counts_.segment_bytes, counts_.most_segment_bytes, bytes_more);
  }

  Counts counts() const;
  // Reads the counts into `now`. A caller whose stack may have no room for them can keep them
  // elsewhere.
  void read(Counts& now) const;
  // Reads the errors, by the size classes of Counts::sizes.
  void read(std::array<VerifiedErrors, kSizeClasses>& errors) const;

  AutoChoices choices;

 private:
  static void add(std::uint64_t& number, std::uint64_t amount = 1) {
    std::atomic_ref(number).fetch_add(amount, std::memory_order_relaxed);
  }
  static void hold(std::uint64_t& held, std::uint64_t& most, std::int64_t more);

  mutable Counts counts_;     // each number is atomic
  mutable std::mutex mutex_;  // protects errors_
  std::array<VerifiedErrors, kSizeClasses> errors_{};
};

// Measures how long this object exists, and adds the time to a stage or to another counter. If
// `name` is given and a trace runs, it also adds a slice to the trace.
class Timed {
 public:
  Timed(Statistics& statistics, Counter stage, const char* name = nullptr, std::uint64_t bytes = 0)
      : statistics_(statistics),
        stage_(stage),
        name_(name),
        bytes_(bytes),
        begin_(Trace::Clock::now()) {}
  ~Timed() {
    const auto end = Trace::Clock::now();
    statistics_.count(stage_, std::uint64_t(std::chrono::nanoseconds(end - begin_).count()));
    if (Trace* const trace = Trace::running(); trace != nullptr && name_ != nullptr)
      trace->add(name_, begin_, end, bytes_);
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  Statistics& statistics_;
  const Counter stage_;
  const char* name_;
  std::uint64_t bytes_;
  Trace::Clock::time_point begin_;
};

}  // namespace slimpi
