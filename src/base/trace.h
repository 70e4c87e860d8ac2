// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_TRACE: what a rank did when, in the trace format that chrome://tracing and Perfetto open.
// One track a rank, one slice for every call and every stage of every segment.
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

  // Rows of their own for what a device does while the threads do something else.
  static constexpr std::uint32_t kThread = 0, kDevice = 1001, kCopiesOut = 1002, kCopiesIn = 1003;

  // Keeps a slice of the calling thread, or of another row. After kMost slices, or without memory,
  // it warns once and from then on only counts them. Any thread; throws nothing.
  void add(const char* name, Clock::time_point begin, Clock::time_point end, std::uint64_t bytes,
           std::uint32_t row = kThread);

  // When it began, in nanoseconds of the wall clock.
  std::int64_t start_time() const;

  // Whose track the events are. Times count from `zero`, of the wall clock, which the ranks agree
  // on: viewers keep microseconds in a double, and those since 1970 would lose so much that slices
  // overlap.
  struct Track {
    int rank;
    const char* host;
    std::int64_t zero;
  };

  // Formats lines of JSON objects, each behind a comma, from line `at` on, as many as fit into
  // `text`, and moves `at` behind them. Returns their length; 0 behind the last line. `text` holds
  // any one line when it has 1 KiB. Allocates nothing.
  std::size_t format(const Track& track, std::size_t& at, std::span<char> text) const;

  // The running trace; null while SLIMPI_TRACE is unset.
  static Trace* running() { return running_.load(std::memory_order_acquire); }
  static void start();

  static constexpr std::size_t kMost = 4u << 20;

 private:
  static std::atomic<Trace*> running_;
  // Slices lie in chunks that never move and whose pages are there before they are written.
  static constexpr std::size_t kChunk = 1 << 13;
  static constexpr std::size_t kRows = 1024;  // of which the names are written
  bool grow();
  std::size_t lines() const;
  std::size_t format_line(const Track& track, std::size_t line, std::span<char> text) const;
  std::size_t format_slice(const Track& track, const Slice& slice, std::span<char> text) const;

  mutable std::mutex mutex_;
  std::array<Slice*, kMost / kChunk> chunks_{};
  std::size_t held_ = 0, slices_ = 0;  // chunks and slices
  std::uint64_t left_out_ = 0;         // once it is not 0, nothing is recorded
  std::bitset<kRows> rows_;            // that have slices
  // The same moment on the clock of the slices and on the wall's, which ranks on other hosts share.
  Clock::time_point steady_;
  std::chrono::system_clock::time_point wall_;
};

}  // namespace slimpi
