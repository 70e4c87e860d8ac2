// SPDX-License-Identifier: BSD-3-Clause
// Chooses the codec with which a sum under SLIMPI_MAX_ERROR is exchanged first. The codec decides
// only how many bytes an exchange sends and how often it is repeated. The check after the exchange
// guarantees the bound of the error (bounded_exchange.h).
//   first sum of a size  the codec that would suffice for normally distributed values
//   later sums           the codec that passed last
//   coarser codec        tried when the errors of several sums in a row allow it. After each failed
//                        try, the number of these sums is doubled
//
// All ranks choose the same codec, because they record the codecs that they agreed on.
#pragma once
#include <array>
#include <cstdint>

#include "comm/communicator.h"
#include "kernels/format.h"

namespace slimpi::algorithm {

// The codecs that SLIMPI_MAX_ERROR chooses from, cheapest first: quantizers of 1 to 16 bits, a
// short value codec (fp16), the exact codec (float32). The ranks send each other a codec as its
// index in this list.
constexpr int kQuantizers = kernels::kMostBits, kCodecs = kQuantizers + 2;
constexpr int kUncompressed = kCodecs - 1;

// Returns the format of codec `index`. The quantizers have the buckets and the rounding of
// `quantizer`.
kernels::Format codec_at(const kernels::Format& quantizer, int index);

// Returns whether a sum of absolute value `peak` is finite in codec `index`.
bool holds(int index, double peak);

// Returns the codec to use next, after a sum with codec `index` had `excess` times the error that
// SLIMPI_MAX_ERROR allows. If excess > 1, this sum is repeated with the returned codec, the first
// of these that exists and suffices:
//   1  the cheapest quantizer that has about `excess` times as many levels (after a quantizer only)
//   2  the short value codec, if its rounding keeps `max_error` and it can hold a sum of absolute
//      value `peak`
//   3  the exact codec
// If excess <= 1, the returned codec is for later sums: the coarsest codec that is worth a try. The
// error of one of the last two codecs says nothing about the error of a quantizer. So after one of
// them, the returned codec is the next cheaper one, but not codec 2 unless rule 2 allows it.
int next_codec(int index, double excess, double max_error, double peak);

// Returns the cheapest codec that is likely to keep `max_error` for normally distributed values.
int codec_for_normal_values(double max_error);

// The choice of the codec for the sums of one size.
class CodecChoice {
 public:
  // Returns the codec to start with.
  int first(double max_error) const;

  // Records a sum that began with codec `first` and passed with codec `last`. To judge by its
  // error, codec `coarsest` would pass as well.
  void passed(int first, int last, int coarsest);

 private:
  static constexpr int kFewest = 4, kMost = 256;  // limits of needed_

  int codec_ = -1;        // -1: no sum yet
  int coarsest_ = 0;      // the coarsest codec that the errors of the last sums_ sums allow
  int sums_ = 0;          // sums since codec_ was set
  int needed_ = kFewest;  // the value of sums_ at which a coarser codec is tried
};

// The choices of a communicator, by size. Two sizes may share a choice, which costs bytes or
// repeated exchanges but saves a call from allocating memory.
class CodecChoices : public comm::Attachment {
 public:
  CodecChoice& of(std::uint64_t count);

 private:
  void options_changed() override { choices_ = {}; }

  std::array<CodecChoice, 256> choices_;
};

}  // namespace slimpi::algorithm
