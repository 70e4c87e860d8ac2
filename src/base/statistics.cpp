// SPDX-License-Identifier: BSD-3-Clause
#include "base/statistics.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

namespace slimpi {

namespace {
constexpr std::size_t index_of(std::size_t offset) {
  return offset / sizeof(std::uint64_t);
}
}  // namespace

#define SLIMPI_COUNTER(member) index_of(offsetof(Counts, member))

const char* to_string(Stage stage) {
  constexpr const char* names[] = {"encode", "exchange", "decode", "intra"};
  static_assert(std::size(names) == kStages);
  return names[std::size_t(stage)];
}

std::size_t size_class_of(std::uint64_t bytes) {
  return std::min<std::size_t>(std::size_t(std::bit_width(std::max<std::uint64_t>(bytes, 1))) - 1,
                               kSizeClasses - 1);
}

void Statistics::passed(BypassReason reason) {
  add(SLIMPI_COUNTER(passed) + std::size_t(reason), 1);
}

void Statistics::compressed(const CompressedCall& call) {
  add(SLIMPI_COUNTER(compressed), 1);
  add(SLIMPI_COUNTER(bytes_in), call.bytes);
  add(SLIMPI_COUNTER(bytes_plain), call.plain_bytes);
  add(call.on_device ? SLIMPI_COUNTER(device_buffers) : SLIMPI_COUNTER(host_buffers), 1);
  constexpr std::size_t kWords = sizeof(Share) / sizeof(std::uint64_t);
  for (const std::size_t share : {SLIMPI_COUNTER(algorithms) + kWords * std::size_t(call.algorithm),
                                  SLIMPI_COUNTER(codecs) + kWords * std::size_t(call.codec),
                                  SLIMPI_COUNTER(sizes) + kWords * size_class_of(call.bytes),
                                  SLIMPI_COUNTER(types) + kWords * std::size_t(call.type)}) {
    add(share + index_of(offsetof(Share, calls)), 1);
    add(share + index_of(offsetof(Share, bytes_in)), call.bytes);
    add(share + index_of(offsetof(Share, bytes_sent)), call.sent_bytes);
    add(share + index_of(offsetof(Share, nanoseconds)), call.nanoseconds);
  }
}

void Statistics::count(std::uint64_t Counts::*number, std::uint64_t amount) {
  static constexpr Counts kPlaces{};
  const auto* const first = reinterpret_cast<const std::uint64_t*>(&kPlaces);
  add(std::size_t(&(kPlaces.*number) - first), amount);
}

void Statistics::left_to_mpi(std::uint64_t bytes, std::uint64_t nodes) {
  if (nodes == 0)
    add(SLIMPI_COUNTER(bytes_left_elsewhere), bytes);
  else
    add(SLIMPI_COUNTER(bytes_left), 2 * (nodes - 1) * bytes);
}

void Statistics::stage(Stage stage, std::uint64_t nanoseconds) {
  add(SLIMPI_COUNTER(stage_nanoseconds) + std::size_t(stage), nanoseconds);
}

void Statistics::error(std::uint64_t bytes, double relative_l2) {
  ErrorSum& errors = errors_[size_class_of(bytes)];
  errors.checked.fetch_add(1, std::memory_order_relaxed);
  errors.sum.fetch_add(relative_l2, std::memory_order_relaxed);
  double seen = errors.max.load(std::memory_order_relaxed);
  while (relative_l2 > seen && !errors.max.compare_exchange_weak(seen, relative_l2)) {
  }
}

Counts Statistics::counts() const {
  std::array<std::uint64_t, kCounts> values{};
  for (std::size_t i = 0; i < kCounts; ++i)
    values[i] = counters_[i].load(std::memory_order_relaxed);
  Counts counts;
  std::memcpy(static_cast<void*>(&counts), values.data(), sizeof counts);
  counts.calls = std::accumulate(counts.passed.begin(), counts.passed.end(),
                                 counts.compressed + counts.exact_in_node);
  return counts;
}

std::array<Errors, kSizeClasses> Statistics::errors() const {
  std::array<Errors, kSizeClasses> all{};
  for (std::size_t i = 0; i < kSizeClasses; ++i) {
    const std::uint64_t checked = errors_[i].checked.load(std::memory_order_relaxed);
    if (checked == 0) continue;
    all[i] = {checked, errors_[i].sum.load(std::memory_order_relaxed) / double(checked),
              errors_[i].max.load(std::memory_order_relaxed)};
  }
  return all;
}

Errors total_of(std::span<const Errors> parts) {
  Errors total;
  for (const Errors& part : parts) {
    total.checked += part.checked;
    total.mean += part.mean * double(part.checked);  // the sum, until it is divided
    total.max = std::max(total.max, part.max);
  }
  if (total.checked != 0) total.mean /= double(total.checked);
  return total;
}

}  // namespace slimpi
