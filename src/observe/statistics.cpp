// SPDX-License-Identifier: BSD-3-Clause
#include "observe/statistics.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace slimpi {

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

void Statistics::error(std::uint64_t bytes, const Deviation& deviation) {
  const double relative_l2 = deviation.relative_l2();
  const std::lock_guard lock(mutex_);
  errors_[size_class_of(bytes)].add({1, relative_l2, relative_l2, deviation.vnmse(),
                                     deviation.nonzero, deviation.zeros, deviation.wrong_signs});
}

void Statistics::hold(std::uint64_t& held, std::uint64_t& most, std::int64_t more) {
  const auto change = std::uint64_t(more);
  const std::uint64_t now =
      change + std::atomic_ref(held).fetch_add(change, std::memory_order_relaxed);
  const std::atomic_ref maximum(most);
  std::uint64_t seen = maximum.load(std::memory_order_relaxed);
  while (more > 0 && now > seen && !maximum.compare_exchange_weak(seen, now)) {
  }
}

void Statistics::read(Counts& now) const {
  auto* const from = reinterpret_cast<std::uint64_t*>(&counts_);
  auto* const to = reinterpret_cast<std::uint64_t*>(&now);
  for (std::size_t i = 0; i < kCounts; ++i)
    to[i] = std::atomic_ref(from[i]).load(std::memory_order_relaxed);
  now.calls =
      std::accumulate(now.bypassed.begin(), now.bypassed.end(), now.compressed + now.exact_in_node);
}

Counts Statistics::counts() const {
  Counts now;
  read(now);
  return now;
}

void Statistics::read(std::array<VerifiedErrors, kSizeClasses>& errors) const {
  const std::lock_guard lock(mutex_);
  errors = errors_;
}

// Finds the row, or makes it. Does not allocate if the row exists, because every call with
// SLIMPI_ALGORITHM=auto comes here.
AutoChoice& AutoChoices::choice_of(Candidates candidates, std::uint64_t bytes) {
  const std::uint64_t from = std::uint64_t(1) << size_class_of(bytes);
  const auto has_name = [](const AutoChoice::Candidate& one, const char* name) {
    return one.name == name;
  };
  for (AutoChoice& row : rows_)
    if (row.from_bytes == from && std::equal(row.candidates.begin(), row.candidates.end(),
                                             candidates.begin(), candidates.end(), has_name))
      return row;
  AutoChoice row;
  row.from_bytes = from;
  for (const char* const name : candidates) row.candidates.push_back({name, 0, 0});
  return rows_.emplace_back(std::move(row));
}

void AutoChoices::add(Candidates candidates, std::uint64_t bytes, std::size_t which,
                      std::uint64_t nanoseconds) {
  const std::lock_guard lock(mutex_);
  AutoChoice::Candidate& tried = choice_of(candidates, bytes).candidates[which];
  tried.least = tried.calls == 0 ? nanoseconds : std::min(tried.least, nanoseconds);
  ++tried.calls;
}

std::string AutoChoices::choose(Candidates candidates, std::uint64_t bytes, std::size_t which) {
  const std::lock_guard lock(mutex_);
  AutoChoice& row = choice_of(candidates, bytes);
  row.chosen = candidates[which];
  ++row.decisions;
  std::string tried;
  for (const AutoChoice::Candidate& one : row.candidates)
    tried += fmt::format("{}{} {:.3f} ms in {} calls", tried.empty() ? "" : ", ", one.name,
                         double(one.least) * 1e-6, one.calls);
  return fmt::format("auto: {} is used for sums of about {} bytes (least times: {})", row.chosen,
                     bytes, tried);
}

std::vector<AutoChoice> AutoChoices::rows() const {
  std::unique_lock lock(mutex_);
  std::vector<AutoChoice> all = rows_;
  lock.unlock();
  std::stable_sort(all.begin(), all.end(), [](const AutoChoice& a, const AutoChoice& b) {
    return a.from_bytes < b.from_bytes;
  });
  return all;
}

}  // namespace slimpi
