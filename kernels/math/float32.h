// SPDX-License-Identifier: BSD-3-Clause
// The value codec float32: sends the values unchanged.
#pragma once
#include "kernels/math/bits.h"

namespace slimpi::kernels {

struct Float32 {
  using Value = float;
};

SLIMPI_HD float encode_value(Float32, float value) {
  return value;
}

SLIMPI_HD float decode_value(Float32, float value) {
  return value;
}

SLIMPI_HD float spacing(Float32, float) {
  return 0;
}

}  // namespace slimpi::kernels
