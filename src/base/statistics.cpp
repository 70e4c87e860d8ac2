// SPDX-License-Identifier: BSD-3-Clause
#include "base/statistics.h"

#include <cstring>

namespace slimpi {

namespace {
constexpr std::size_t index_of(std::size_t offset) {
  return offset / sizeof(std::uint64_t);
}
}  // namespace

#define SLIMPI_COUNTER(member) index_of(offsetof(Counts, member))

const char* to_string(BypassReason reason) {
  constexpr const char* names[] = {"small",       "datatype",  "op",   "comm",
                                   "off",         "start",     "rule", "single_node",
                                   "nonblocking", "nonfinite", "auto", "failure"};
  static_assert(std::size(names) == kBypassReasons);
  return names[std::size_t(reason)];
}

const char* to_string(Stage stage) {
  constexpr const char* names[] = {"encode", "exchange", "decode", "intra"};
  static_assert(std::size(names) == kStages);
  return names[std::size_t(stage)];
}

void Statistics::passed(BypassReason reason) {
  add(SLIMPI_COUNTER(calls), 1);
  add(SLIMPI_COUNTER(passed) + std::size_t(reason), 1);
}

void Statistics::compressed(std::uint64_t bytes, std::uint64_t plain_bytes,
                            std::uint64_t nanoseconds, bool device) {
  add(SLIMPI_COUNTER(calls), 1);
  add(SLIMPI_COUNTER(compressed), 1);
  add(SLIMPI_COUNTER(bytes_in), bytes);
  add(SLIMPI_COUNTER(bytes_plain), plain_bytes);
  add(SLIMPI_COUNTER(nanoseconds), nanoseconds);
  add(device ? SLIMPI_COUNTER(device_buffers) : SLIMPI_COUNTER(host_buffers), 1);
}

void Statistics::sent(std::uint64_t bytes) {
  add(SLIMPI_COUNTER(bytes_sent), bytes);
}

void Statistics::stage(Stage stage, std::uint64_t nanoseconds) {
  add(SLIMPI_COUNTER(stage_nanoseconds) + std::size_t(stage), nanoseconds);
}

void Statistics::error(double relative_l2) {
  add(SLIMPI_COUNTER(checked), 1);
  error_sum_.fetch_add(relative_l2, std::memory_order_relaxed);
  double seen = max_error_.load(std::memory_order_relaxed);
  while (relative_l2 > seen && !max_error_.compare_exchange_weak(seen, relative_l2)) {
  }
}

void Statistics::state(std::int64_t more) {
  add(SLIMPI_COUNTER(state_bytes), std::uint64_t(more));
}

void Statistics::scratch(std::int64_t more) {
  add(SLIMPI_COUNTER(scratch_bytes), std::uint64_t(more));
  scratch_.add(more);
}

void Statistics::dropped() {
  add(SLIMPI_COUNTER(state_dropped), 1);
}

void Statistics::staged() {
  add(SLIMPI_COUNTER(staged_calls), 1);
}

void Statistics::overflow(std::uint64_t values) {
  add(SLIMPI_COUNTER(overflowed), values);
}

void Statistics::coded(std::size_t codec) {
  add(SLIMPI_COUNTER(codecs) + codec, 1);
}

void Statistics::repeated() {
  add(SLIMPI_COUNTER(repeated), 1);
}

Counts Statistics::counts() const {
  std::array<std::uint64_t, kCounts> values{};
  for (std::size_t i = 0; i < kCounts; ++i)
    values[i] = counters_[i].load(std::memory_order_relaxed);
  Counts counts;
  std::memcpy(static_cast<void*>(&counts), values.data(), sizeof counts);
  return counts;
}

double Statistics::mean_error() const {
  const std::uint64_t checked = counts().checked;
  return checked == 0 ? 0 : error_sum_.load(std::memory_order_relaxed) / double(checked);
}

}  // namespace slimpi
