// SPDX-License-Identifier: BSD-3-Clause
// Converts doubles to floats and tests whether float32 can hold a block of them
// (kernels/math/float64.h), and adds doubles for Codec::float64. Included by loops.cpp alone.
#pragma once
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "kernels/cpu/tiles.h"
#include "kernels/math/float64.h"

namespace slimpi::kernels {
namespace {

// The facts that one pass over a block collects about its values. The fields are vectors, because a
// compiler that must respect NaNs does not vectorize a maximum of scalars. On aarch64 a vector
// fills one register, because g++ 12 handles longer vectors there one element at a time.
#if defined(__aarch64__)
constexpr std::size_t kDoubleLanes = 2;
#else
constexpr std::size_t kDoubleLanes = 8;
#endif
using Doubles [[gnu::vector_size(kDoubleLanes * sizeof(double))]] = double;
using Floats [[gnu::vector_size(kDoubleLanes * sizeof(float))]] = float;
using Masks [[gnu::vector_size(kDoubleLanes * sizeof(double))]] = long long;

struct Found {
  Doubles least, greatest;  // the extremes, NaNs ignored
  Masks numbers, floats;    // all ones if there is no NaN; if every value is a float32
};

Found nothing_found() {
  const Doubles zero = {};
  const Masks all = zero == zero;
  return {zero + __builtin_inf(), zero - __builtin_inf(), all, all};
}

// Includes `values` in `found`, and sets *narrow to `values` rounded to floats. The arguments are
// pointers, because some ABIs have no registers of this size.
SLIMPI_HD void include_doubles(Found& found, const Doubles& values, Floats* narrow) {
#if defined(__aarch64__)
  *narrow = (Floats)vcvt_f32_f64((float64x2_t)values);
  const auto wide = (Doubles)vcvt_f64_f32((float32x2_t)*narrow);
#else
  *narrow = __builtin_convertvector(values, Floats);
  const Doubles wide = __builtin_convertvector(*narrow, Doubles);
#endif
  found.least = values < found.least ? values : found.least;
  found.greatest = values > found.greatest ? values : found.greatest;
  found.numbers &= values == values;
  found.floats &= wide == values;
}

// Rounds the n doubles at `from` to the floats at `to`, and includes them in `found`.
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
  // Fill the vector with copies of the last value, which change neither the extremes nor the flags.
  for (std::size_t lane = 0; lane < kDoubleLanes; ++lane)
    values[lane] = from[whole + lane < n ? whole + lane : n - 1];
  Floats narrow;
  include_doubles(found, values, &narrow);
  __builtin_memcpy(to + whole, &narrow, (n - whole) * sizeof(float));
}

// Returns whether float32 can hold the block that `found` describes; kernels/math/float64.h has the
// condition. No magnitude may be above `limit`.
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

// The doubles that are added per step. Inputs are copied before they are added, since encoded
// segments and floats are only aligned to 4 bytes.
constexpr std::size_t kDoublesOfTile = 256;

// total += the n doubles at `from`. A NaN becomes kDoubleNanBits, because machines differ in the
// NaNs they produce.
void add_doubles(const std::byte* from, std::size_t n, double* SLIMPI_RESTRICT total) {
  double read[kDoublesOfTile];
  __builtin_memcpy(read, from, n * sizeof(double));
  for (std::size_t i = 0; i < n; ++i) total[i] = add(total[i], read[i]);
}

// Implements Kernels::sum_encode for Codec::float64, with `count` doubles. `out` may be null.
void sum_doubles(const Addend* addends, int addend_count, const float* carry, std::size_t count,
                 std::byte* out, float* result) {
  double total[kDoublesOfTile];
  for (std::size_t i = 0; i < count; i += kDoublesOfTile) {
    const std::size_t n = count - i < kDoublesOfTile ? count - i : kDoublesOfTile;
    const std::size_t offset = i * sizeof(double), bytes = n * sizeof(double);
    const auto source = [&](int a) {
      const std::byte* const encoded = addends[a].encoded;
      return (encoded != nullptr ? encoded : (const std::byte*)addends[a].exact) + offset;
    };
    const std::byte* const first = carry == nullptr ? source(0) : (const std::byte*)carry + offset;
    __builtin_memcpy(total, first, bytes);
    for (int a = carry == nullptr ? 1 : 0; a < addend_count; ++a) add_doubles(source(a), n, total);
    if (out != nullptr) __builtin_memcpy(out + offset, total, bytes);
    __builtin_memcpy((std::byte*)result + offset, total, bytes);
  }
}

}  // namespace
}  // namespace slimpi::kernels
