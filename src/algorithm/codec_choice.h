// SPDX-License-Identifier: BSD-3-Clause
// Chooses the codec with which a sum under SLIMPI_MAX_ERROR is exchanged first. The choice decides
// only how many bytes are sent and how often the exchange is repeated; the bound itself is
// guaranteed by the check after each exchange (bounded_exchange.h).
//   first sum of a size  the codec that would suffice for normally distributed values
//   later sums           the codec that passed last
//   coarser codec        tried once the errors of several sums in a row allow it; each failed try
//                        doubles the number of sums that the next try waits for
//
// All ranks choose the same codec, because each records only codecs that all have agreed on.
#pragma once
#include <array>
#include <cstdint>

#include "comm/communicator.h"
#include "kernels/format.h"

namespace slimpi::algorithm {

// The codecs that SLIMPI_MAX_ERROR chooses from, cheapest first: quantizers of 1 to 16 bits, a
// short value codec (fp16), and the exact codec (float32). The ranks exchange the index of a codec
// in this list.
constexpr int kQuantizers = kernels::kMostBits, kCodecs = kQuantizers + 2;
constexpr int kUncompressed = kCodecs - 1;

// Returns the format of codec `index`. Quantizers take their buckets and rounding from `quantizer`.
kernels::Format codec_at(const kernels::Format& quantizer, int index);

// Returns whether codec `index` can hold a sum of magnitude `peak` without overflow.
bool holds(int index, double peak);

// Returns the codec to use next, after a sum with codec `index` had `excess` times the error that
// SLIMPI_MAX_ERROR allows. If excess > 1, this sum is repeated with the returned codec, which is
// the first of these that exists and suffices:
//   1  the cheapest quantizer with about `excess` times as many levels (only after a quantizer)
//   2  the short value codec, if its rounding keeps `max_error` and it can hold a sum of magnitude
//      `peak`
//   3  the exact codec
// If excess <= 1, the returned codec is for later sums: the coarsest one that is worth a try. After
// the short value codec or the exact codec, whose errors say nothing about those of a quantizer,
// the next cheaper codec is returned; the short value codec is skipped unless rule 2 allows it.
int next_codec(int index, double excess, double max_error, double peak);

// Returns the cheapest codec that probably keeps `max_error` for normally distributed values.
int codec_for_normal_values(double max_error);

// The choice of the codec for sums of one size.
class CodecChoice {
 public:
  // Returns the codec to start with.
  int first(double max_error) const;

  // Records a sum that began with codec `first` and passed with codec `last`. `coarsest` is the
  // coarsest codec that would have passed, to judge by the error.
  void passed(int first, int last, int coarsest);

 private:
  static constexpr int kFewest = 4, kMost = 256;  // limits of needed_

  int codec_ = -1;        // -1: no sum yet
  int coarsest_ = 0;      // the coarsest codec that the errors of the last sums_ sums allow
  int sums_ = 0;          // sums since codec_ was set
  int needed_ = kFewest;  // after so many sums a coarser codec is tried
};

// The choices of a communicator, by size. Different sizes may share a choice. That costs bytes or
// repeated exchanges, but spares calls from allocating memory.
class CodecChoices : public comm::Attachment {
 public:
  CodecChoice& of(std::uint64_t count);

 private:
  void options_changed() override { choices_ = {}; }

  std::array<CodecChoice, 256> choices_;
};

}  // namespace slimpi::algorithm
