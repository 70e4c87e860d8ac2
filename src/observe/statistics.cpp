// SPDX-License-Identifier: BSD-3-Clause
#include "observe/statistics.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace slimpi {

const char* to_string(Stage stage) {
  constexpr const char* names[] = {"encode", "exchange", "decode", "intra"};
  static_assert(std::size(names) == kStages);
  return names[std::size_t(stage)];
}

std::size_t size_class_of(std::uint64_t bytes) {
  return std::min<std::size_t>(std::size_t(std::bit_width(std::max<std::uint64_t>(bytes, 1))) - 1,
                               kSizeClasses - 1);
}

void Statistics::compressed(const CompressedCall& call) {
  add(counts_.compressed);
  add(counts_.bytes_in, call.bytes);
  add(counts_.bytes_plain, call.plain_bytes);
  add(call.on_device ? counts_.device_buffers : counts_.host_buffers);
  for (Share* const share :
       {&counts_.algorithms[std::size_t(call.algorithm)], &counts_.codecs[std::size_t(call.codec)],
        &counts_.sizes[size_class_of(call.bytes)], &counts_.types[std::size_t(call.type)],
        &counts_.collectives[std::size_t(call.collective)]}) {
    add(share->calls);
    add(share->bytes_in, call.bytes);
    add(share->bytes_sent, call.sent_bytes);
    add(share->nanoseconds, call.nanoseconds);
  }
}

void Statistics::bypassed_bytes(std::uint64_t bytes, std::uint64_t nodes, Collective collective) {
  if (nodes == 0)
    add(counts_.bytes_bypassed_elsewhere, bytes * row_of(collective).phases / 2);
  else
    add(counts_.bytes_bypassed, row_of(collective).phases * (nodes - 1) * bytes);
}

void Statistics::error(std::uint64_t bytes, const Deviation& deviation) {
  ErrorSum& errors = errors_[size_class_of(bytes)];
  const double relative_l2 = deviation.relative_l2();
  errors.checked.fetch_add(1, std::memory_order_relaxed);
  errors.nonzero.fetch_add(deviation.nonzero, std::memory_order_relaxed);
  errors.zeros.fetch_add(deviation.zeros, std::memory_order_relaxed);
  errors.wrong_signs.fetch_add(deviation.wrong_signs, std::memory_order_relaxed);
  errors.sum.fetch_add(relative_l2, std::memory_order_relaxed);
  errors.vnmse.fetch_add(deviation.vnmse(), std::memory_order_relaxed);
  double seen = errors.max.load(std::memory_order_relaxed);
  while (relative_l2 > seen && !errors.max.compare_exchange_weak(seen, relative_l2)) {
  }
}

Counts Statistics::counts() const {
  Counts now;
  auto* const from = reinterpret_cast<std::uint64_t*>(&counts_);
  auto* const to = reinterpret_cast<std::uint64_t*>(&now);
  for (std::size_t i = 0; i < kCounts; ++i)
    to[i] = std::atomic_ref(from[i]).load(std::memory_order_relaxed);
  now.calls =
      std::accumulate(now.bypassed.begin(), now.bypassed.end(), now.compressed + now.exact_in_node);
  return now;
}

std::array<Errors, kSizeClasses> Statistics::errors() const {
  std::array<Errors, kSizeClasses> all{};
  for (std::size_t i = 0; i < kSizeClasses; ++i) {
    const ErrorSum& from = errors_[i];
    const std::uint64_t checked = from.checked.load(std::memory_order_relaxed);
    if (checked == 0) continue;
    all[i] = {checked,
              from.sum.load(std::memory_order_relaxed) / double(checked),
              from.max.load(std::memory_order_relaxed),
              from.vnmse.load(std::memory_order_relaxed) / double(checked),
              from.nonzero.load(std::memory_order_relaxed),
              from.zeros.load(std::memory_order_relaxed),
              from.wrong_signs.load(std::memory_order_relaxed)};
  }
  return all;
}

Errors total_of(std::span<const Errors> parts) {
  Errors total;
  for (const Errors& part : parts) {
    total.checked += part.checked;
    total.mean += part.mean * double(part.checked);  // sums, until they are divided
    total.vnmse += part.vnmse * double(part.checked);
    total.max = std::max(total.max, part.max);
    total.nonzero += part.nonzero;
    total.zeros += part.zeros;
    total.wrong_signs += part.wrong_signs;
  }
  if (total.checked == 0) return total;
  total.mean /= double(total.checked);
  total.vnmse /= double(total.checked);
  return total;
}

}  // namespace slimpi
