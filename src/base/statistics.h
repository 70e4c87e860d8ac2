// SPDX-License-Identifier: BSD-3-Clause
// What slimpi did in this process: counters that calls add to from any thread, and the plain
// numbers that a report is made from.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/trace.h"

namespace slimpi {

// Why a call went to MPI unchanged. The names are the report's keys.
enum class BypassReason {
  small,        // fewer bytes than SLIMPI_MIN_SIZE
  datatype,     // not MPI_FLOAT, MPI_REAL or MPI_REAL4
  op,           // not MPI_SUM
  comm,         // one rank, or an intercommunicator
  off,          // SLIMPI_ALGORITHM=off, MPI_Pcontrol(0), or memory that SLIMPI_BUFFERS excludes
  start,        // one of a buffer's first SLIMPI_START calls
  rule,         // a row of SLIMPI_RULES
  single_node,  // nothing would be sent over a network
  nonblocking,  // MPI_Iallreduce, MPI_Allreduce_init
  nonfinite,    // a low-rank step with an infinity or a NaN in it
  automatic,    // SLIMPI_ALGORITHM=auto: MPI's own is faster, or is on trial
  failure,      // some rank could not get what the call needs
};
constexpr std::size_t kBypassReasons = 12;
const char* to_string(BypassReason reason);

// The stages of a compressed call whose time is counted.
enum class Stage { encode, exchange, decode, intra };
constexpr std::size_t kStages = 4;
const char* to_string(Stage stage);

constexpr std::size_t kChosenCodecs = 10;

// Plain numbers, in this order in memory so that ranks can be summed with one reduction.
struct Counts {
  std::uint64_t calls = 0, compressed = 0;
  std::array<std::uint64_t, kBypassReasons> passed{};
  std::uint64_t bytes_in = 0;     // of the buffers of compressed calls
  std::uint64_t bytes_sent = 0;   // sent between nodes, headers included
  std::uint64_t bytes_plain = 0;  // what a bandwidth-optimal float allreduce would have sent
  std::uint64_t nanoseconds = 0;  // in compressed calls
  std::array<std::uint64_t, kStages> stage_nanoseconds{};
  std::uint64_t host_buffers = 0, device_buffers = 0;
  std::uint64_t staged_calls = 0;   // left to MPI, with host copies of buffers that it cannot take
  std::uint64_t checked = 0;        // calls whose error was measured
  std::uint64_t state_bytes = 0;    // held now for residuals, low-rank factors and replicas
  std::uint64_t scratch_bytes = 0;  // held now for message buffers
  std::uint64_t state_dropped = 0;  // times that ranks disagreed about a tensor state
  std::uint64_t overflowed = 0;     // fp16 or bf16 values that became infinite
  // Calls for which SLIMPI_MAX_ERROR chose 1 to 8 bits, fp16, float32.
  std::array<std::uint64_t, kChosenCodecs> codecs{};
  std::uint64_t repeated = 0;  // exchanges repeated because of the error of the first one
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
  std::uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  std::uint64_t most() const { return most_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> held_{0}, most_{0};
};

class Statistics {
 public:
  void add(std::size_t counter, std::uint64_t amount) {
    counters_[counter].fetch_add(amount, std::memory_order_relaxed);
  }
  void passed(BypassReason reason);
  void compressed(std::uint64_t bytes, std::uint64_t plain_bytes, std::uint64_t nanoseconds,
                  bool device);
  void sent(std::uint64_t bytes);
  void stage(Stage stage, std::uint64_t nanoseconds);
  void error(double relative_l2);
  void state(std::int64_t bytes_more);
  void scratch(std::int64_t bytes_more);
  void segment(std::int64_t more, std::int64_t bytes_more) {
    segments_.add(more);
    segment_bytes_.add(bytes_more);
  }
  void dropped();
  void staged();
  void overflow(std::uint64_t values);
  void coded(std::size_t codec);
  void repeated();

  Counts counts() const;
  double mean_error() const;
  double max_error() const { return max_error_.load(std::memory_order_relaxed); }
  // The maximum of scratch memory held at one time, in bytes.
  std::uint64_t most_scratch() const { return scratch_.most(); }
  // The maximum of shared-memory segments mapped at one time: their number, and their bytes.
  std::uint64_t most_segments() const { return segments_.most(); }
  std::uint64_t most_segment_bytes() const { return segment_bytes_.most(); }

 private:
  std::array<std::atomic<std::uint64_t>, kCounts> counters_{};
  std::atomic<double> error_sum_{0}, max_error_{0};
  HighWater scratch_, segments_, segment_bytes_;
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
