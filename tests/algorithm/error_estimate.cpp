// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/error_estimate.h"

#include <cmath>

#include "tests/helper/cmocka_cxx.h"

using namespace slimpi::algorithm;

namespace {

void facts_are_sums_over_buckets(void**) {
  float values[20];
  for (int i = 0; i < 20; ++i) values[i] = float(i % 10) - 2;
  const TileFacts facts = facts_of(values, 20, 10);
  double energy = 0;
  for (const float x : values) energy += double(x) * double(x);
  assert_float_equal(facts.energy, energy, 1e-9);
  assert_float_equal(facts.spread, 2 * 10 * 81.0, 1e-9);
  assert_float_equal(facts.peak, 7, 0);
  values[13] = NAN;
  assert_true(std::isnan(facts_of(values, 20, 10).energy));
}

void few_tiles_are_all_drawn(void**) {
  const TileFacts facts[4] = {};
  const auto drawn = draw_tiles(facts, 4, 0.5);
  assert_int_equal(drawn.size(), 4);
  for (std::uint64_t i = 0; i < 4; ++i)
    assert_true(drawn[i].tile == i && drawn[i].weight == 1 && drawn[i].certain == 1);
}

// Weights stand for all tiles, and what they say of the whole is right on average.
void draws_are_fair(void**) {
  std::vector<TileFacts> facts(1000);
  double energy = 0;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    facts[i].energy = 1 + double(i % 7);
    facts[i].spread = 2 + double(i % 5);
    energy += facts[i].energy;
  }
  double tiles = 0, found = 0;
  constexpr int kTimes = 200;
  for (int time = 0; time < kTimes; ++time)
    for (const Drawn& one : draw_tiles(facts, 16, (time + 0.5) / kTimes)) {
      tiles += one.weight / kTimes;
      found += one.weight * facts[one.tile].energy / kTimes;
    }
  assert_true(std::fabs(tiles - 1000) < 20);
  assert_true(std::fabs(found - energy) < 0.02 * energy);
}

void a_tile_that_outweighs_the_others_is_certain(void**) {
  std::vector<TileFacts> facts(100, {1, 1, 1});
  facts[42].energy = 1e12;
  const auto drawn = draw_tiles(facts, 8, 0.3);
  int others = 0;
  bool certain = false;
  for (const Drawn& one : drawn) {
    if (one.tile == 42)
      certain = one.certain == 1 && one.weight == 1;
    else
      ++others;
  }
  assert_true(certain);
  assert_in_range(others, 3, 8);
}

Sample sample_of(const std::vector<std::vector<float>>& values) {
  Sample sample;
  sample.count = values.front().size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    sample.values.insert(sample.values.end(), values[i].begin(), values[i].end());
    sample.ranks.push_back(int(i));
  }
  return sample;
}

void trials_measure_both_rounds(void**) {
  // Levels of a unit of 1 are exact in 2 bits: 0, 1, 2, 3, and their sum in 0, 2, 4, 6.
  const Sample exact = sample_of({{0, 1, 2, 3}, {0, 1, 2, 3}});
  slimpi::kernels::Format format{slimpi::kernels::Codec::quantized, 2, false, 64};
  Trial trial = try_codec(format, {}, exact);
  assert_true(trial.error == 0 && trial.total == 4 + 16 + 36 && trial.triangle == 0);
  // With a longer bucket around them, of -7.5 to 7.5, they are not: its levels are 5 apart.
  Sample part = sample_of({{0, 1, 2, 3, -7.5f, 7.5f}, {0, 1, 2, 3, -7.5f, 7.5f}});
  part.count = 4;
  part.extra = 2;
  trial = try_codec(format, {}, part);
  assert_true(trial.error > 1 && trial.total == 4 + 16 + 36);
  assert_true(trial.triangle >= trial.error && trial.caps >= trial.triangle);
}

void estimates_are_cautious_unless_all_is_known(void**) {
  std::vector<Sample> samples(4);
  const std::vector<Trial> trials = {
      {1, 100, 2, 20}, {3, 100, 5, 20}, {2, 100, 3, 20}, {2, 100, 3, 20}};
  Estimate found = estimate(samples, trials, 1000);
  assert_float_equal(found.relative, std::sqrt(0.02), 1e-12);
  const double sampled = found.cautious;
  assert_true(sampled > 1.1 * found.relative);
  for (Sample& sample : samples) sample.certain = true;
  found = estimate(samples, trials, 1000);
  assert_true(found.cautious < sampled && found.cautious > found.relative);
  // A check with few places can only add up the norms.
  assert_float_equal(estimate(samples, trials, 1).cautious, std::sqrt(13 / 400.0), 1e-12);
  const std::vector<Trial> lost = {{1, 0, 1, 1}, {0, 0}, {0, 0}, {0, 0}};
  assert_true(std::isinf(estimate(samples, lost, 1000).cautious));
  samples.resize(1);
  samples[0].certain = false;
  assert_true(std::isinf(estimate(samples, {trials.data(), 1}, 1000).cautious));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(facts_are_sums_over_buckets),
      cmocka_unit_test(few_tiles_are_all_drawn),
      cmocka_unit_test(draws_are_fair),
      cmocka_unit_test(a_tile_that_outweighs_the_others_is_certain),
      cmocka_unit_test(trials_measure_both_rounds),
      cmocka_unit_test(estimates_are_cautious_unless_all_is_known),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr) != 0;
}
