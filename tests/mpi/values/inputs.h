// SPDX-License-Identifier: BSD-3-Clause
// Inputs of float sums that every rank can compute for all ranks. Some have special values or
// extreme ranges.
#pragma once
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

enum class Family {
  normal,
  uniform,
  zeros,
  negative_zeros,
  constant,
  subnormal,
  offset,
  huge,
  mixed_scale,
  sparse,
  one_nan,
  one_infinity,
  opposite_infinities
};

inline const char* family_name(Family family) {
  constexpr const char* names[] = {"normal",
                                   "uniform",
                                   "zeros",
                                   "negative zeros",
                                   "constant",
                                   "subnormal",
                                   "1e6 offset",
                                   "near FLT_MAX",
                                   "mixed scale",
                                   "sparse",
                                   "one NaN",
                                   "one infinity",
                                   "opposite infinities"};
  return names[int(family)];
}

struct Case {
  Family family;
  std::size_t count;
  std::uint64_t seed;
  bool in_place, misaligned, large_count;
  int ranks;
  bool first = false;  // the special value comes first, so that all other buckets follow its own
  std::vector<std::size_t> blocks = {};  // of a reduce-scatter: what each rank gets
  bool gathers = false;                  // an all-gather, in which each rank sends its block
};

// A counter-based generator. The same arguments give the same number on every rank.
inline double draw(std::uint64_t seed, std::uint64_t rank, std::uint64_t index) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15ull + rank * 0xd1342543de82ef95ull +
                    index * 0xbf58476d1ce4e5b9ull + 1;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return double((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

inline float make_value(const Case& test, int rank, std::size_t i) {
  const double u = draw(test.seed, std::uint64_t(rank), i),
               v = draw(test.seed + 7, std::uint64_t(rank), i);
  const float normal = float(std::sqrt(-2 * std::log(1 - u)) * std::cos(6.283185307179586 * v));
  const std::size_t spot = test.first ? 0 : test.count / 2;
  const float infinity = std::numeric_limits<float>::infinity();
  switch (test.family) {
    case Family::normal:
      return normal;
    case Family::uniform:
      return float(u);
    case Family::zeros:
      return 0.0f;
    case Family::negative_zeros:
      return -0.0f;
    case Family::constant:
      return 0.75f;
    case Family::subnormal:
      return float(u * 1e-42);
    case Family::offset:
      return float(1e6 + u);
    case Family::huge:
      return float((2 * u - 1) * 0.9 * double(FLT_MAX) / test.ranks);
    case Family::mixed_scale:
      return float(normal * std::pow(10.0, 12 * v - 6));
    case Family::sparse:
      return i % 37 == 0 ? normal : 0.0f;
    case Family::one_nan:
      return i == spot && rank == test.ranks - 1 ? std::nanf("") : normal;
    case Family::one_infinity:
      return i == spot && rank == 0 ? infinity : normal;
    case Family::opposite_infinities:
      return i == spot && rank < 2 ? (rank == 0 ? infinity : -infinity) : normal;
  }
  return 0;
}

inline std::vector<float> make_input(const Case& test, int rank) {
  std::vector<float> input(test.count);
  for (std::size_t i = 0; i < test.count; ++i) input[i] = make_value(test, rank, i);
  return input;
}

// Returns the sum of all ranks' inputs, in double.
inline std::vector<double> exact_sum(const Case& test) {
  std::vector<double> sum(test.count);
  for (int rank = 0; rank < test.ranks; ++rank)
    for (std::size_t i = 0; i < test.count; ++i) sum[i] += double(make_value(test, rank, i));
  return sum;
}

inline std::vector<Case> make_cases(bool large, std::size_t ranks) {
  std::vector<Case> cases;
  std::uint64_t seed = 1;
  const auto add = [&](Family family, std::size_t count) {
    const std::uint64_t s = seed++;
    cases.push_back({family, count, s, s % 2 == 0, s % 3 == 0, s % 5 == 0, int(ranks)});
  };
  if (large) {
    add(Family::normal, 3'000'001);
    add(Family::one_nan, 1'048'577);
    return cases;
  }
  const std::size_t sizes[] = {0,    1,     2,     ranks - 1, ranks, ranks + 1, 63,   64,
                               65,   127,   2047,  2048,      2049,  4095,      4096, 4097,
                               8192, 10007, 65535, 65536,     65537, 200003};
  for (const std::size_t size : sizes) add(Family::normal, size);
  for (int family = 0; family <= int(Family::opposite_infinities); ++family)
    for (const std::size_t size :
         {std::size_t(1), std::size_t(77), std::size_t(5000), std::size_t(30001)})
      add(Family(family), size);
  for (const Family family : {Family::one_nan, Family::one_infinity, Family::opposite_infinities}) {
    add(family, 30001);
    cases.back().first = true;
  }
  return cases;
}
