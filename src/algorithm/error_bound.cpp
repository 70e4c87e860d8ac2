// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "algorithm/bounded_exchange.h"
#include "base/hash.h"

namespace slimpi::algorithm {

namespace {

constexpr std::uint64_t kFewestElements = 1024, kMostTiles = 2048;

// Returns ln(2 / p) for the Bernstein inequality (bounded_exchange.h), where p is kMissProbability
// divided by `bounds`, the number of bounds that can fail.
double log_of_chance(std::size_t bounds) {
  return std::log(2 * double(bounds) / kMissProbability);
}

double square(double x) {
  return x * x;
}

double triangle_of(std::span<const ErrorTile* const> tiles) {
  double energy = 0;
  for (const ErrorTile* const tile : tiles) energy += square(tile->norm);
  return energy;
}

// Returns an upper bound of the squared error of all tiles together, estimated from the elements
// drawn at random (the sampled bound of bounded_exchange.h). `log_chance` sets how rarely the
// estimate may be too low. `most` is at least the squared error of any tile. Each drawn element
// contributes a `share` from 0 to 1, whose expected value is the squared error of its tile divided
// by `most`.
double sampled_energy(std::span<const ErrorTile* const> tiles, double log_chance) {
  double largest = 0;
  std::uint64_t count = 0;
  for (const ErrorTile* const tile : tiles) {
    largest = std::max(largest, tile->largest);
    count = std::max(count, tile->count);
  }
  const double most = double(count) * square(largest);
  const double draws = double(tiles.size()) * kPlaces;
  if (most == 0) return 0;
  double sum = 0, squares = 0;
  for (const ErrorTile* const tile : tiles)
    for (const double error : tile->at) {
      const double share = std::min(1.0, double(tile->count) * square(error) / most);
      sum += share;
      squares += square(share);
    }
  const double mean = sum / draws;
  const double variance = std::max(0.0, (squares - sum * mean) / (draws - 1));
  const double upper =
      mean + std::sqrt(2 * variance * log_chance / draws) + 7 * log_chance / (3 * (draws - 1));
  return upper * most * double(tiles.size());
}

}  // namespace

double error_energy_bound(std::span<const ErrorTile> tiles, std::pmr::memory_resource* memory) {
  // Tiles are sampled together if their largest errors have the same binary exponent. In one sample
  // for all tiles, the one with the largest error would make the bound useless for the others.
  std::pmr::map<int, std::pmr::vector<const ErrorTile*>> classes(memory);
  std::pmr::vector<const ErrorTile*> all(memory);
  for (const ErrorTile& tile : tiles) {
    if (!std::isfinite(tile.norm) || !std::isfinite(tile.largest))
      return std::numeric_limits<double>::infinity();
    if (tile.norm == 0) continue;
    classes[std::ilogb(tile.largest)].push_back(&tile);
    all.push_back(&tile);
  }
  if (all.empty()) return 0;
  const double log_chance = log_of_chance(classes.size() + 1);
  double energy = 0;
  for (const auto& [exponent, of_class] : classes)
    energy += std::min(triangle_of(of_class), sampled_energy(of_class, log_chance));
  return std::min(energy, sampled_energy(all, log_chance));
}

std::uint64_t check_tile_elements(std::uint64_t count) {
  return std::max(kFewestElements, (count + kMostTiles - 1) / kMostTiles);
}

std::uint64_t place_in(std::uint64_t stream, std::uint64_t tile, int place, std::uint64_t count) {
  return (splitmix64(stream, tile * kPlaces + std::uint64_t(place)) >> 11) % count;
}

}  // namespace slimpi::algorithm
