// SPDX-License-Identifier: BSD-3-Clause
// When float32 stands for float64. A vector is seen as blocks of Float64Limits::block consecutive
// values from its start; what does not fill a block belongs to the last one. A block can be held if
// no magnitude is above Float64Limits::greatest, none is a NaN, and
//   every value is a float32, so that nothing is rounded, or
//   max - min >= 2^-11 m and >= 2^-137, where m is the greatest magnitude.
// Rounding changes a value x by at most 2^-24 |x|, and a subnormal one by at most 2^-150. In a
// block that can be held this is at most 2^-13 (max - min): 1/8192 of the range of the block.
#pragma once
#include <cstddef>

#include "kernels/inline.h"

namespace slimpi::kernels {

struct Float64Limits {
  double greatest = 0;    // of the magnitudes
  std::size_t block = 1;  // values
};

SLIMPI_HD bool is_wide_enough(double least, double greatest) {
  const double magnitude = greatest > -least ? greatest : -least;
  const double range = greatest - least;
  return range >= 0x1p-11 * magnitude && range >= 0x1p-137;
}

}  // namespace slimpi::kernels
