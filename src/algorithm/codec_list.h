// SPDX-License-Identifier: BSD-3-Clause
// The codecs that SLIMPI_MAX_ERROR chooses from, cheapest first: quantizers of 1 to 8 bits, a short
// value codec, the exact one. The ranks send each other a codec as its index in this list.
#pragma once
#include "kernels/format.h"

namespace slimpi::algorithm {

constexpr int kQuantizers = 8, kCodecs = kQuantizers + 2;
constexpr int kUncompressed = kCodecs - 1;

// The format of codec `index`. The quantizers have the buckets and the rounding of `quantizer`.
kernels::Format codec_at(const kernels::Format& quantizer, int index);

// Whether a sum of absolute value `peak` is finite in codec `index`.
bool holds(int index, double peak);

// The next codec to try where codec `index` has `excess` times the error that SLIMPI_MAX_ERROR
// allows: the cheapest quantizer that is finer by this factor, judged by its number of levels. If
// there is none, the short value codec: its error is relative to each value and says nothing about
// a quantizer's. After that, or where its rounding cannot keep `max_error` or it cannot hold a sum
// of absolute value `peak`, the exact codec.
int finer_codec(int index, double excess, double max_error, double peak);

// The coarsest codec that is worth a try for sums like one that codec `index` did with `excess`
// times the error that is allowed, 1 at most. An error of the last two codecs says nothing about a
// quantizer's, so after these it is the next coarser one.
int coarsest_codec(int index, double excess, double max_error, double peak);

// The cheapest codec that is likely to keep `max_error` for normally distributed values.
int codec_for_normal_values(double max_error);

}  // namespace slimpi::algorithm
