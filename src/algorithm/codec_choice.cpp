// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/codec_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/hash.h"

namespace slimpi::algorithm {

namespace {

using kernels::Codec;

// The short value codec. `error` is about the mean relative error of its rounding, `most` the
// largest relative error.
constexpr struct {
  Codec codec;
  double error, most;
} kShort{Codec::fp16, 0x1p-13, 0x1p-11};
constexpr int kShortIndex = kQuantizers;

// The next quantizer gets kMargin times the levels that it seems to need. The error is only about
// inversely proportional to the number of levels, and the sum should not narrowly fail the check.
constexpr double kMargin = 1.05;
double levels(int index) {
  return std::exp2(index + 1) - 1;
}

// Returns the coarsest quantizer with at least `wanted` levels, or kQuantizers if no quantizer has
// so many.
int quantizer_with(double wanted) {
  int index = 0;
  while (index < kQuantizers && !(levels(index) >= wanted)) ++index;
  return index;
}

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
  // The owner adds rounded values, so the sum may exceed `peak` by their rounding.
  return index != kShortIndex ||
         peak * (1 + kShort.most) <= double(kernels::row_of(kShort.codec).greatest);
}

int next_codec(int index, double excess, double max_error, double peak) {
  const bool passed = excess <= 1;
  const bool held = max_error >= kShort.error && holds(kShortIndex, peak);
  if (index >= kQuantizers) {
    if (!passed) return kUncompressed;
    return index == kUncompressed && held ? kShortIndex : kQuantizers - 1;
  }
  // `share` is the bound of the error divided by the norm of the result. The result contains the
  // error, so if `share` is 1 or more, nothing is known of the error relative to the exact sum.
  const double share = excess * max_error / (1 + max_error);
  if (!passed)
    excess =
        share < 1 ? excess / std::sqrt(1 - share * share) : std::numeric_limits<double>::infinity();
  const int enough = quantizer_with(kMargin * excess * levels(index));
  if (passed) return std::min(index, enough);
  const int finer = std::max(index + 1, enough);
  return finer < kQuantizers ? finer : held ? kShortIndex : kUncompressed;
}

// Returns the codec for normally distributed values. kErrorOfOneLevel follows from the range of a
// bucket of some hundred to some thousand such values, which is 6 to 7 standard deviations, and
// from each value being rounded twice.
int codec_for_normal_values(double max_error) {
  constexpr double kErrorOfOneLevel = 2.5;
  const int index = quantizer_with(kErrorOfOneLevel / max_error);
  return index < kQuantizers ? index : kUncompressed;
}

int CodecChoice::first(double max_error) const {
  return codec_ >= 0 ? codec_ : codec_for_normal_values(max_error);
}

void CodecChoice::passed(int first, int last, int coarsest) {
  if (last != first) {
    // The codec that the sum began with was too coarse.
    if (codec_ >= 0) needed_ = std::min(2 * needed_, kMost);
    sums_ = 0;
  }
  codec_ = last;
  coarsest_ = sums_ == 0 ? coarsest : std::max(coarsest_, coarsest);
  if (++sums_ < needed_ || coarsest_ >= codec_) return;
  codec_ = coarsest_;
  sums_ = 0;
}

CodecChoice& CodecChoices::of(std::uint64_t count) {
  return choices_[splitmix64(0, count) % choices_.size()];
}

}  // namespace slimpi::algorithm
