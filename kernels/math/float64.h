// SPDX-License-Identifier: BSD-3-Clause
// The condition under which float32 can hold a vector of doubles. It is tested per block of
// Float64Limits::block consecutive values; the last block also has the remaining values, which are
// too few for a block. float32 can hold a block if it has no NaN and no magnitude above
// Float64Limits::greatest, and if
//   every value is a float32, so that nothing is rounded, or
//   max - min >= 2^-11 m and >= 2^-137, where m is the greatest magnitude.
// Rounding changes a value x by at most 2^-24 |x|, or a subnormal value by at most 2^-150. Under
// the second condition both are at most 2^-13 (max - min), which is 1/8192 of the range of the
// block.
#pragma once
#include <cstddef>

#include "kernels/inline.h"

namespace slimpi::kernels {

struct Float64Limits {
  double greatest = 0;    // the greatest magnitude allowed
  std::size_t block = 1;  // the values per block
};

SLIMPI_HD bool is_wide_enough(double least, double greatest) {
  const double magnitude = greatest > -least ? greatest : -least;
  const double range = greatest - least;
  return range >= 0x1p-11 * magnitude && range >= 0x1p-137;
}

}  // namespace slimpi::kernels
