// SPDX-License-Identifier: BSD-3-Clause
// What slimpi did in this process: counters that calls add to from any thread, and the plain
// numbers that a report is made from.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "observe/bypass_reason.h"
#include "observe/deviation.h"
#include "observe/trace.h"
#include "options/option_types.h"

namespace slimpi {

// The stages of a compressed call whose time is counted.
enum class Stage { encode, exchange, decode, intra };
constexpr std::size_t kStages = 4;
const char* to_string(Stage stage);

// What encoded the values of a compressed call. The codec layer gives numbers and names
// (comm/used_codec.h).
enum class UsedCodec : std::size_t {};
constexpr std::size_t kMostCodecs = 24;

// Compressed calls are counted by algorithm, by codec, and by size class: class
// k has the buffers of 2^k to 2^(k+1) - 1 bytes, the last class all larger ones too.
constexpr std::size_t kSizeClasses = 44;
std::size_t size_class_of(std::uint64_t bytes);

// The compressed calls of one algorithm, codec or size class.
struct Share {
  std::uint64_t calls = 0;
  std::uint64_t bytes_in = 0, bytes_sent = 0;  // as in Counts
  std::uint64_t nanoseconds = 0;
};

// What SLIMPI_VERIFY measured.
struct Errors {
  std::uint64_t checked = 0;                              // calls
  double mean = 0, max = 0;                               // of their relative L2 errors
  double vnmse = 0;                                       // mean
  std::uint64_t nonzero = 0, zeros = 0, wrong_signs = 0;  // values, as in Deviation

  // Of the values that are not 0 in the exact sums, from 0 to 1.
  double share(std::uint64_t values) const {
    return nonzero == 0 ? 0 : double(values) / double(nonzero);
  }
};
Errors total_of(std::span<const Errors> parts);

// What Statistics is told of a compressed call.
struct CompressedCall {
  AlgorithmId algorithm;
  UsedCodec codec;
  ElementType type = ElementType::float32;
  Collective collective = Collective::allreduce;
  std::uint64_t bytes = 0;        // of the buffer
  std::uint64_t plain_bytes = 0;  // as Counts::bytes_plain; 0 unless this is rank 0
  std::uint64_t sent_bytes = 0;   // between nodes by this rank, headers included
  std::uint64_t nanoseconds = 0;
  bool on_device = false;
};

// Plain numbers, in this order in memory so that ranks can be summed with one reduction.
struct Counts {
  // Every call is compressed, exact_in_node, or bypassed. So `calls` is not counted, but added up
  // when the counts are read.
  std::uint64_t calls = 0, compressed = 0;
  std::uint64_t exact_in_node = 0;  // sums inside one node that slimpi did itself
  std::array<std::uint64_t, kBypassReasons> bypassed{};
  std::uint64_t bytes_in = 0;     // of the buffers of compressed calls
  std::uint64_t bytes_sent = 0;   // sent between nodes, headers included
  std::uint64_t bytes_plain = 0;  // what a bandwidth-optimal allreduce would have sent
  // Sums of any type that were left to MPI: what an optimal allreduce sent between the nodes, where
  // slimpi knows the nodes; else the bytes of their buffers (half of them of a reduce-scatter).
  // Counted by rank 0 only.
  std::uint64_t bytes_bypassed = 0, bytes_bypassed_elsewhere = 0;
  std::uint64_t nanoseconds = 0;         // inside slimpi, in calls that it did itself
  std::uint64_t verify_nanoseconds = 0;  // of these: for the exact sums of SLIMPI_VERIFY
  std::array<std::uint64_t, kStages> stage_nanoseconds{};
  std::uint64_t host_buffers = 0, device_buffers = 0;
  std::uint64_t staged_calls = 0;   // left to MPI, with host copies of buffers that it cannot take
  std::uint64_t state_bytes = 0;    // held now for residuals, low-rank factors and replicas
  std::uint64_t state_dropped = 0;  // times that a tensor state was dropped by all ranks together
  std::uint64_t state_calls = 0;    // calls that need a tensor state
  std::uint64_t state_first_times = 0, state_second_times = 0;  // of these: with the same state
  std::uint64_t overflowed = 0;    // values of sums that are infinite in 16 bits
  std::uint64_t beyond_bound = 0;  // elements beyond the bound of error feedback
  std::uint64_t repeated = 0;      // exchanges repeated because of the error of the first one
  std::array<Share, kAlgorithms> algorithms{};
  std::array<Share, kMostCodecs> codecs{};
  std::array<Share, kSizeClasses> sizes{};
  std::array<Share, kElementTypes> types{};
  std::array<Share, kCollectives> collectives{};
  std::uint64_t reduce_scatters = 0;  // calls of the program's that are one, whoever makes it
};
constexpr std::size_t kCounts = sizeof(Counts) / sizeof(std::uint64_t);

// The amount that is held now, and its maximum so far. Any thread may add.
class HighWater {
 public:
  void add(std::int64_t more) {
    const auto change = std::uint64_t(more);
    const std::uint64_t held = change + held_.fetch_add(change, std::memory_order_relaxed);
    std::uint64_t seen = most_.load(std::memory_order_relaxed);
    while (more > 0 && held > seen && !most_.compare_exchange_weak(seen, held)) {
    }
  }
  std::uint64_t most() const { return most_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> held_{0}, most_{0};
};

class Statistics {
 public:
  void bypassed(BypassReason reason) { add(counts_.bypassed[std::size_t(reason)]); }
  void compressed(const CompressedCall& call);
  // Adds to one of the numbers of Counts that stand alone.
  void count(std::uint64_t Counts::*number, std::uint64_t amount = 1) {
    add(counts_.*number, amount);
  }
  // Bytes of a float sum that goes to MPI, by `nodes` nodes; 0: the nodes are not known.
  void bypassed_bytes(std::uint64_t bytes, std::uint64_t nodes,
                      Collective collective = Collective::allreduce);
  void stage(Stage stage, std::uint64_t nanoseconds) {
    add(counts_.stage_nanoseconds[std::size_t(stage)], nanoseconds);
  }
  // Of a call with a buffer of so many bytes.
  void error(std::uint64_t bytes, const Deviation& deviation);
  void scratch(std::int64_t bytes_more) { scratch_.add(bytes_more); }
  void segment(std::int64_t more, std::int64_t bytes_more) {
    segments_.add(more);
    segment_bytes_.add(bytes_more);
  }

  Counts counts() const;
  // By size class. The size classes are those of Counts::sizes.
  std::array<Errors, kSizeClasses> errors() const;
  // The maximum of scratch memory held at one time, in bytes.
  std::uint64_t most_scratch() const { return scratch_.most(); }
  // The maximum of shared-memory segments mapped at one time: their number, and their bytes.
  std::uint64_t most_segments() const { return segments_.most(); }
  std::uint64_t most_segment_bytes() const { return segment_bytes_.most(); }

 private:
  static void add(std::uint64_t& number, std::uint64_t amount = 1) {
    std::atomic_ref(number).fetch_add(amount, std::memory_order_relaxed);
  }
  mutable Counts counts_;  // each number is atomic
  struct ErrorSum {
    std::atomic<std::uint64_t> checked{0}, nonzero{0}, zeros{0}, wrong_signs{0};
    std::atomic<double> sum{0}, max{0}, vnmse{0};
  };
  std::array<ErrorSum, kSizeClasses> errors_{};
  HighWater scratch_, segments_, segment_bytes_;
};

// Adds the time from its construction to its end, or its destruction, to the time inside slimpi, or
// to another number of Counts.
class Inside {
 public:
  explicit Inside(Statistics& statistics, std::uint64_t Counts::*number = &Counts::nanoseconds)
      : statistics_(statistics), number_(number), begin_(Trace::Clock::now()) {}
  ~Inside() { end(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  void end() {
    if (ended_) return;
    ended_ = true;
    const std::chrono::nanoseconds spent = Trace::Clock::now() - begin_;
    statistics_.count(number_, std::uint64_t(spent.count()));
  }

 private:
  Statistics& statistics_;
  std::uint64_t Counts::*const number_;
  const Trace::Clock::time_point begin_;
  bool ended_ = false;
};

// Adds the time from its construction to its destruction to a stage, and to the trace when one
// runs.
class Timed {
 public:
  Timed(Statistics& statistics, Stage stage, const char* name, std::uint64_t bytes)
      : statistics_(statistics),
        stage_(stage),
        name_(name),
        bytes_(bytes),
        begin_(Trace::Clock::now()) {}
  ~Timed() {
    const auto end = Trace::Clock::now();
    statistics_.stage(stage_, std::uint64_t(std::chrono::nanoseconds(end - begin_).count()));
    if (Trace* const trace = Trace::running(); trace != nullptr)
      trace->add(name_, begin_, end, bytes_);
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  Statistics& statistics_;
  Stage stage_;
  const char* name_;
  std::uint64_t bytes_;
  Trace::Clock::time_point begin_;
};

}  // namespace slimpi
