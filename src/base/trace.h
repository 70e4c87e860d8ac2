// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_TRACE: what a rank did when, in the trace format that chrome://tracing and Perfetto open.
// One track a rank, one slice for every call and every stage of every segment.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"

namespace slimpi {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  // One slice. `name` must be a literal.
  struct Slice {
    const char* name;
    Clock::time_point begin, end;
    std::uint64_t bytes;
    std::uint32_t thread;
  };

  Trace();

  // Rows of their own for what a device does while the threads do something else.
  static constexpr std::uint32_t kThread = 0, kDevice = 1001, kCopiesOut = 1002, kCopiesIn = 1003;

  // Keeps a slice of the calling thread, or of another row; after kMost slices only counts them.
  // Any thread.
  void add(const char* name, Clock::time_point begin, Clock::time_point end, std::uint64_t bytes,
           std::uint32_t row = kThread);

  // When it began, in nanoseconds of the wall clock.
  std::int64_t start_time() const;

  // The slices as lines of JSON objects, each followed by a comma, for the rank's track. Times
  // count from `zero`, of the wall clock, which the ranks agree on: viewers keep microseconds in a
  // double, and those since 1970 would lose so much that slices overlap.
  std::string events(int rank, const std::string& host, std::int64_t zero) const;

  // The running trace; null while SLIMPI_TRACE is unset.
  static Trace* running() { return running_.load(std::memory_order_acquire); }
  static void start();

  static constexpr std::size_t kMost = 4u << 20;

 private:
  static std::atomic<Trace*> running_;
  // Slices lie in chunks that never move and whose pages are there before they are written.
  static constexpr std::size_t kChunk = 1 << 16;
  Slice* new_chunk();

  mutable std::mutex mutex_;
  std::vector<Slice*> chunks_;
  std::size_t slices_ = 0;
  std::uint64_t left_out_ = 0;
  // The same moment on the clock of the slices and on the wall's, which ranks on other hosts share.
  Clock::time_point steady_;
  std::chrono::system_clock::time_point wall_;
};

// `pattern` with %r, %h and %p replaced; %% is a percent sign.
std::string trace_file_name(const std::string& pattern, int rank, const std::string& host,
                            int process);

// Does the pattern name a file for every rank?
bool trace_is_per_rank(const std::string& pattern);

// Writes events (of one rank, or of all one after the other) as a complete trace.
Status write_trace(const std::string& path, std::string events);

}  // namespace slimpi
