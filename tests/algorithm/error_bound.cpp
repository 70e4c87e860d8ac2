// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/bounded_exchange.h"

#include <random>

#include "tests/helper/base/unit_test.h"

using namespace slimpi::algorithm;

namespace {

constexpr std::uint64_t kCount = 1024;

// Errors of `ranks` ranks, uniform in [-1, 1] times `scale(tile)`, equal or independent; what the
// check learns of them, and their squared norm.
double make_tiles(int ranks, bool alike, std::uint64_t tiles, auto scale,
                  std::vector<ErrorTile>* made, std::uint64_t stream = 1) {
  std::mt19937_64 random(stream);
  std::uniform_real_distribution<double> uniform(-1, 1);
  double energy = 0;
  for (std::uint64_t number = 0; number < tiles; ++number) {
    std::vector<double> sums(kCount);
    ErrorTile tile{.count = kCount};
    std::vector<double> first(kCount);
    for (int rank = 0; rank < ranks; ++rank) {
      double squares = 0, largest = 0;
      for (std::uint64_t i = 0; i < kCount; ++i) {
        if (rank == 0 || !alike) first[i] = scale(number) * uniform(random);
        sums[i] += first[i];
        squares += first[i] * first[i];
        largest = std::max(largest, std::fabs(first[i]));
      }
      tile.norm += std::sqrt(squares);
      tile.largest += largest;
    }
    for (const double error : sums) energy += error * error;
    for (int place = 0; place < kPlaces; ++place)
      tile.at[place] = sums[place_in(stream, number, place, kCount)];
    made->push_back(tile);
  }
  return energy;
}

double one(std::uint64_t) {
  return 1;
}

UNIT_TEST(no_error_is_known_to_be_none) {
  assert_true(error_energy_bound({}) == 0);
  assert_true(error_energy_bound(std::vector<ErrorTile>(3, {.count = kCount})) == 0);
}

UNIT_TEST(what_is_not_finite_has_no_bound) {
  std::vector<ErrorTile> tiles(2, {.count = kCount, .norm = 1, .largest = 1});
  tiles[1].norm = NAN;
  assert_true(std::isinf(error_energy_bound(tiles)));
}

// Equal errors add up to the sum of their norms.
UNIT_TEST(the_bound_holds_for_errors_that_are_alike) {
  for (const std::uint64_t count : {1, 3, 500}) {
    std::vector<ErrorTile> tiles;
    const double energy = make_tiles(4, true, count, one, &tiles);
    const double bound = error_energy_bound(tiles);
    assert_true(bound >= energy * (1 - 1e-12) && bound <= energy * (1 + 1e-12));
  }
}

UNIT_TEST(independent_errors_are_bounded_by_the_sample) {
  std::vector<ErrorTile> tiles;
  const double energy = make_tiles(8, false, 2000, one, &tiles);
  const double bound = error_energy_bound(tiles);
  assert_true(bound >= energy && bound < 1.5 * energy);
  double triangle = 0;
  for (const ErrorTile& tile : tiles) triangle += tile.norm * tile.norm;
  assert_true(triangle > 5 * energy);
}

// One tile of many holds nearly all of the error, or scales differ from tile to tile.
UNIT_TEST(the_bound_holds_for_errors_in_few_tiles) {
  for (std::uint64_t stream = 1; stream <= 20; ++stream) {
    std::vector<ErrorTile> tiles;
    double energy = make_tiles(
        3, false, 100, [](std::uint64_t tile) { return tile == 37 ? 1000.0 : 1.0; }, &tiles,
        stream);
    assert_true(error_energy_bound(tiles) >= energy);
    tiles.clear();
    energy = make_tiles(
        3, false, 100, [](std::uint64_t tile) { return std::pow(2.0, -double(tile % 30)); }, &tiles,
        stream);
    assert_true(error_energy_bound(tiles) >= energy);
  }
}

// Places are drawn evenly, and differ between tiles and calls.
UNIT_TEST(places_are_spread) {
  double mean = 0;
  int alike = 0;
  for (std::uint64_t tile = 0; tile < 1000; ++tile)
    for (int place = 0; place < kPlaces; ++place) {
      const std::uint64_t at = place_in(7, tile, place, kCount);
      assert_true(at < kCount);
      mean += double(at) / (1000 * kPlaces);
      alike += at == place_in(8, tile, place, kCount) ? 1 : 0;
    }
  assert_true(std::fabs(mean - kCount / 2.0) < 20);
  assert_true(alike < 40);
}

UNIT_TEST(tiles_are_bounded_in_number) {
  assert_int_equal(check_tile_elements(1), 1024);
  for (const std::uint64_t count : {1ull << 20, 1ull << 24, 3ull << 31})
    assert_true((count + check_tile_elements(count) - 1) / check_tile_elements(count) <= 2048);
}

}  // namespace
