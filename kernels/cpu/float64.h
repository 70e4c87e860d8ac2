// SPDX-License-Identifier: BSD-3-Clause
// Converts float64 to float32 and finds out whether float32 can hold a block
// (kernels/math/float64.h). Adds doubles for Codec::float64. For loops.cpp alone.
#pragma once
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "kernels/cpu/tiles.h"
#include "kernels/math/float64.h"

namespace slimpi::kernels {
namespace {

// The results of one pass over a block. The fields are vectors, because a compiler that respects
// NaNs does not vectorize a maximum. On aarch64 they are one register each, because g++ 12 selects
// and converts the elements of longer vectors one by one there.
#if defined(__aarch64__)
constexpr std::size_t kDoubleLanes = 2;
#else
constexpr std::size_t kDoubleLanes = 8;
#endif
using Doubles [[gnu::vector_size(kDoubleLanes * sizeof(double))]] = double;
using Floats [[gnu::vector_size(kDoubleLanes * sizeof(float))]] = float;
using Masks [[gnu::vector_size(kDoubleLanes * sizeof(double))]] = long long;

struct Found {
  Doubles least, greatest;  // the extremes of the values that are no NaN
  Masks numbers, floats;    // all ones if no value is a NaN; if every value is a float32
};

Found nothing_found() {
  const Doubles zero = {};
  const Masks all = zero == zero;
  return {zero + __builtin_inf(), zero - __builtin_inf(), all, all};
}

// Includes `values` in `found`, and sets *narrow to the values, rounded. The arguments are passed
// by pointers, because not every ABI has registers of this size.
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

// Sets `to` to the n values of `from`, rounded, and includes the values in `found`.
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
  // Copies of the last value fill the vector. They do not change the extremes and flags.
  for (std::size_t lane = 0; lane < kDoubleLanes; ++lane)
    values[lane] = from[whole + lane < n ? whole + lane : n - 1];
  Floats narrow;
  include_doubles(found, values, &narrow);
  __builtin_memcpy(to + whole, &narrow, (n - whole) * sizeof(float));
}

// Returns whether float32 can hold the block (kernels/math/float64.h).
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

// A copy of the doubles of one input of a sum. Encoded segments and floats are aligned to 4 bytes
// only, so doubles are read and written by copies.
constexpr std::size_t kDoublesOfTile = 256;

// total += n doubles at `from`. A NaN in the sum is the one with the bits kDoubleNanBits, because
// machines make different NaNs.
void add_doubles(const std::byte* from, std::size_t n, double* SLIMPI_RESTRICT total) {
  double read[kDoublesOfTile];
  __builtin_memcpy(read, from, n * sizeof(double));
  for (std::size_t i = 0; i < n; ++i) total[i] = add(total[i], read[i]);
}

// Does the work of Kernels::sum_encode for `count` doubles. `out` may be null.
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
