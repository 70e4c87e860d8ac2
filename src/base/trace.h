// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_TRACE: what a rank did at which time, in the format that chrome://tracing and Perfetto
// read. One track per rank, one slice for every call and every stage of every segment.
#pragma once
#include <array>
#include <atomic>
#include <bitset>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>

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

  // Separate rows for work of a device that runs at the same time as the threads.
  static constexpr std::uint32_t kThread = 0, kDevice = 1001, kCopiesOut = 1002, kCopiesIn = 1003;

  // Adds a slice to the row of the calling thread, or to another row. After kMost slices, or
  // without memory, it warns once and from then on only counts them. Any thread; throws nothing.
  void add(const char* name, Clock::time_point begin, Clock::time_point end, std::uint64_t bytes,
           std::uint32_t row = kThread);

  // The start of the trace, in nanoseconds of the wall clock.
  std::int64_t start_time() const;

  // The rank that the events belong to. Times are relative to `zero`, a wall-clock time that the
  // ranks agree on: viewers keep microseconds in a double, in which times since 1970 would lose so
  // many bits that slices overlap.
  struct Track {
    int rank;
    const char* host;
    std::int64_t zero;
  };

  // Formats lines of JSON objects, each after a comma, beginning with line `at`, as many as fit
  // into `text`, and advances `at` past them. Returns their length; 0 after the last line. 1 KiB of
  // `text` is enough for any line. Allocates nothing.
  std::size_t format(const Track& track, std::size_t& at, std::span<char> text) const;

  // The running trace; null while SLIMPI_TRACE is unset.
  static Trace* running() { return running_.load(std::memory_order_acquire); }
  static void start();

  static constexpr std::size_t kMost = 4u << 20;

 private:
  static std::atomic<Trace*> running_;
  // Slices are stored in chunks that never move. The pages of a chunk are mapped before it is used.
  static constexpr std::size_t kChunk = 1 << 13;
  static constexpr std::size_t kRows = 1024;  // rows whose names are written
  bool grow();
  std::size_t lines() const;
  std::size_t format_line(const Track& track, std::size_t line, std::span<char> text) const;
  std::size_t format_slice(const Track& track, const Slice& slice, std::span<char> text) const;

  mutable std::mutex mutex_;
  std::array<Slice*, kMost / kChunk> chunks_{};
  std::size_t held_ = 0, slices_ = 0;  // numbers of chunks and of slices
  std::uint64_t left_out_ =
      0;                     // slices that were not recorded; once it is not 0, nothing is recorded
  std::bitset<kRows> rows_;  // rows that have slices
  // The same time on the clock of the slices and on the wall clock, which ranks on other hosts
  // share.
  Clock::time_point steady_;
  std::chrono::system_clock::time_point wall_;
};

}  // namespace slimpi
