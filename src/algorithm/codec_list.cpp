// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/codec_list.h"

#include <cmath>

namespace slimpi::algorithm {

namespace {

using kernels::Codec;

// The short value codec, and the relative error that its rounding has in the mean, about, and at
// most.
constexpr struct {
  Codec codec;
  double error, most;
} kShort{Codec::fp16, 0x1p-13, 0x1p-11};
constexpr int kShortIndex = kQuantizers;

}  // namespace

kernels::Format codec_at(const kernels::Format& quantizer, int index) {
  kernels::Format format = quantizer;
  if (index < kQuantizers) {
    format.codec = Codec::quantized;
    format.bits = std::uint8_t(index + 1);
  } else {
    format.codec = index == kShortIndex ? kShort.codec : Codec::float32;
  }
  return format;
}

bool holds(int index, double peak) {
  // The owner adds values that were rounded.
  return index != kShortIndex ||
         peak * (1 + kShort.most) <= double(kernels::row_of(kShort.codec).greatest);
}

int finer_codec(int index, double excess, double max_error, double peak) {
  // The error is about inversely proportional to the number of levels. The factor 1.05 is a
  // margin, so that the next codec does not just fail.
  const double wanted = 1.05 * excess * (std::exp2(index + 1) - 1);
  for (int finer = index + 1; finer < kQuantizers; ++finer)
    if (std::exp2(finer + 1) - 1 >= wanted) return finer;
  const bool shorter = index < kShortIndex && max_error >= kShort.error && holds(kShortIndex, peak);
  return shorter ? kShortIndex : kExactCodec;
}

}  // namespace slimpi::algorithm
