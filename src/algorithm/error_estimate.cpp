// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/error_estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "algorithm/error_bound.h"
#include "device/device.h"

namespace slimpi::algorithm {

namespace {

constexpr std::uint64_t kLanes = 8;  // accumulators, so that loops over them vectorize

// The margin for the random draw, in standard deviations of the estimate.
constexpr double kCaution = 1;

}  // namespace

TileFacts facts_of(const float* values, std::uint64_t count, std::uint64_t bucket) {
  TileFacts facts;
  for (std::uint64_t first = 0; first < count; first += bucket) {
    const std::uint64_t end = std::min(count, first + bucket);
    float low[kLanes], high[kLanes];
    double squares[kLanes] = {};
    std::fill_n(low, kLanes, values[first]);
    std::fill_n(high, kLanes, values[first]);
    std::uint64_t i = first;
    for (; i + kLanes <= end; i += kLanes)
      for (std::uint64_t lane = 0; lane < kLanes; ++lane) {
        const float x = values[i + lane];
        low[lane] = x < low[lane] ? x : low[lane];
        high[lane] = x > high[lane] ? x : high[lane];
        squares[lane] += double(x) * double(x);
      }
    for (; i < end; ++i) {
      low[0] = std::min(low[0], values[i]);
      high[0] = std::max(high[0], values[i]);
      squares[0] += double(values[i]) * double(values[i]);
    }
    const double least = *std::min_element(low, low + kLanes);
    const double largest = *std::max_element(high, high + kLanes);
    for (const double square : squares) facts.energy += square;
    facts.spread += (largest - least) * (largest - least) * double(end - first);
    facts.peak = std::max({facts.peak, std::fabs(least), std::fabs(largest)});
  }
  return facts;
}

namespace {

// The share of each tile in all energy and spread, plus a small constant share for every tile.
std::pmr::vector<double> shares_of(std::span<const TileFacts> facts,
                                   std::pmr::memory_resource* memory) {
  double energy = 0, spread = 0;
  for (const TileFacts& fact : facts) {
    energy += fact.energy;
    spread += fact.spread;
  }
  const double each = 1 / double(facts.size());
  std::pmr::vector<double> shares(memory);
  shares.reserve(facts.size());
  for (const TileFacts& fact : facts)
    shares.push_back(0.1 * each + 0.45 * (energy > 0 ? fact.energy / energy : each) +
                     0.45 * (spread > 0 ? fact.spread / spread : each));
  return shares;
}

}  // namespace

std::pmr::vector<Drawn> draw_tiles(std::span<const TileFacts> facts, std::uint64_t wanted,
                                   double start, std::pmr::memory_resource* memory) {
  std::pmr::vector<Drawn> drawn(memory);
  if (facts.size() <= wanted) {
    for (std::uint64_t tile = 0; tile < facts.size(); ++tile) drawn.push_back({tile, 1, 1});
    return drawn;
  }
  const std::pmr::vector<double> shares = shares_of(facts, memory);
  std::pmr::vector<bool> certain(facts.size(), false, memory);
  double left = 1, draws = double(wanted);
  for (bool more = true; more;) {
    more = false;
    for (std::uint64_t tile = 0; tile < facts.size(); ++tile) {
      if (certain[tile] || shares[tile] * draws < left) continue;
      certain[tile] = more = true;
      left -= shares[tile];
      draws = std::max(3.0, draws - 1);
    }
  }
  // Systematic sampling: the shares of the other tiles are laid end to end, and equal steps from
  // `start` select tiles.
  double reached = 0, next = start;
  for (std::uint64_t tile = 0; tile < facts.size(); ++tile) {
    if (certain[tile]) {
      drawn.push_back({tile, 1, 1});
      continue;
    }
    const double chance = shares[tile] * draws / left;
    reached += chance;
    if (next >= reached) continue;
    drawn.push_back({tile, 1 / chance, 0});
    next += 1;
  }
  return drawn;
}

Trial try_codec(const kernels::Format& format, const kernels::RandomStream& draw,
                const Sample& sample, std::pmr::memory_resource* memory) {
  const kernels::Kernels& kernels = *device::host().kernels();
  const std::uint64_t count = sample.length();
  kernels::Format used = format;
  if (sample.extra != 0) used.bucket = 0;
  std::pmr::vector<std::byte> code(kernels::encoded_bytes(used, count), memory);
  std::pmr::vector<float> sum(count, memory), decoded(count, memory);
  std::pmr::vector<double> exact(sample.count, memory);
  double norms = 0, largest = 0;
  const auto pass = [&](int rank, const float* values) {
    kernels::RandomStream here = draw;
    here.rank = std::uint32_t(rank);
    here.first = sample.first;
    kernels.encode(used, here, values, nullptr, count, code.data(), nullptr);
    kernels.decode(used, code.data(), count, decoded.data(), nullptr);
    double energy = 0, most = 0;
    for (std::uint64_t i = 0; i < sample.count; ++i) {
      const double error = double(decoded[i]) - double(values[i]);
      energy += error * error;
      most = std::max(most, std::fabs(error));
    }
    norms += std::sqrt(energy);
    largest += most;
  };
  for (std::size_t member = 0; member < sample.ranks.size(); ++member) {
    const float* const values = sample.of(member);
    const float* addend = values;
    if (int(member) != sample.owner) {
      pass(sample.ranks[member], values);
      addend = decoded.data();
    }
    for (std::uint64_t i = 0; i < count; ++i) sum[i] = member == 0 ? addend[i] : sum[i] + addend[i];
    for (std::uint64_t i = 0; i < sample.count; ++i) exact[i] += double(values[i]);
  }
  pass(sample.ranks[std::size_t(sample.owner)], sum.data());
  Trial trial;
  for (std::uint64_t i = 0; i < sample.count; ++i) {
    const double error = double(decoded[i]) - exact[i];
    trial.error += error * error;
    trial.total += exact[i] * exact[i];
  }
  trial.triangle = norms * norms;
  trial.caps = largest * largest * double(sample.count);
  return trial;
}

Estimate estimate(std::span<const Sample> samples, std::span<const Trial> trials,
                  std::uint64_t tiles) {
  double error = 0, total = 0, triangle = 0, caps = 0;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    triangle += samples[i].weight * trials[i].triangle;
    caps += samples[i].weight * trials[i].caps;
    error += samples[i].weight * trials[i].error;
    total += samples[i].weight * trials[i].total;
  }
  const double infinite = std::numeric_limits<double>::infinity();
  const bool known = std::all_of(samples.begin(), samples.end(),
                                 [](const Sample& sample) { return sample.certain; });
  if (known && triangle == 0) return {};
  if (!(total > 0) || !std::isfinite(error)) return {infinite, infinite};
  const double square = error / total;
  const double bound = expected_energy_bound(error, triangle, caps, tiles) / total;
  if (known) return {std::sqrt(square), std::sqrt(bound)};
  // The standard deviation of a ratio of two sums, from the difference of each drawn tile from that
  // ratio.
  double off = 0, drawn = 0;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (samples[i].certain) continue;
    const double one = samples[i].weight * (trials[i].error - square * trials[i].total);
    off += one * one;
    drawn += 1;
  }
  if (drawn < 2) return {std::sqrt(square), infinite};
  const double deviation = std::sqrt(off * drawn / (drawn - 1)) / total;
  if (square == 0) return {0, std::sqrt(bound)};
  return {std::sqrt(square), std::sqrt((square + kCaution * deviation) * (bound / square))};
}

}  // namespace slimpi::algorithm
