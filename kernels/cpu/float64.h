// SPDX-License-Identifier: BSD-3-Clause
// Between float64 and float32. Included by loops.cpp alone.
#pragma once
#include "kernels/cpu/tiles.h"
#include "kernels/math/float64.h"

namespace slimpi::kernels {
namespace {

// The findings of one pass over a tile. They are vectors, because a compiler that keeps NaNs in
// mind does not vectorize a maximum.
constexpr std::size_t kDoubleLanes = 8;
using Doubles [[gnu::vector_size(kDoubleLanes * sizeof(double))]] = double;
using Floats [[gnu::vector_size(kDoubleLanes * sizeof(float))]] = float;
using Masks [[gnu::vector_size(kDoubleLanes * sizeof(double))]] = long long;

struct Found {
  Doubles least, greatest;  // of all that are no NaN
  Masks numbers, floats;    // all ones: no NaN so far; every value is a float32
};

Found nothing_found() {
  const Doubles zero = {};
  const Masks all = zero == zero;
  return {zero + __builtin_inf(), zero - __builtin_inf(), all, all};
}

// *narrow = the values, rounded. By pointers: registers of this size are not in every ABI.
SLIMPI_HD void include_doubles(Found& found, const Doubles& values, Floats* narrow) {
  *narrow = __builtin_convertvector(values, Floats);
  const Doubles wide = __builtin_convertvector(*narrow, Doubles);
  found.least = values < found.least ? values : found.least;
  found.greatest = values > found.greatest ? values : found.greatest;
  found.numbers &= values == values;
  found.floats &= wide == values;
}

// to = from, rounded.
void narrow_block(const double* from, std::size_t n, Found& found, float* to) {
  const std::size_t whole = n / kDoubleLanes * kDoubleLanes;
  Doubles values;
  for (std::size_t i = 0; i < whole; i += kDoubleLanes) {
    __builtin_memcpy(&values, from + i, sizeof values);
    Floats narrow;
    include_doubles(found, values, &narrow);
    __builtin_memcpy(to + i, &narrow, sizeof narrow);
  }
  if (whole == n) return;
  // The last one fills the lanes, which changes nothing that is found.
  for (std::size_t lane = 0; lane < kDoubleLanes; ++lane)
    values[lane] = from[whole + lane < n ? whole + lane : n - 1];
  Floats narrow;
  include_doubles(found, values, &narrow);
  __builtin_memcpy(to + whole, &narrow, (n - whole) * sizeof(float));
}

bool can_hold(const Found& found, double limit) {
  double least = found.least[0], greatest = found.greatest[0];
  long long numbers = -1, floats = -1;
  for (std::size_t lane = 0; lane < kDoubleLanes; ++lane) {
    least = found.least[lane] < least ? found.least[lane] : least;
    greatest = found.greatest[lane] > greatest ? found.greatest[lane] : greatest;
    numbers &= found.numbers[lane];
    floats &= found.floats[lane];
  }
  if (numbers == 0 || greatest > limit || least < -limit) return false;
  return floats != 0 || is_wide_enough(least, greatest);
}

}  // namespace
}  // namespace slimpi::kernels
