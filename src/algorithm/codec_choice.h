// SPDX-License-Identifier: BSD-3-Clause
// The codec with which a sum under SLIMPI_MAX_ERROR is exchanged first. The check after the
// exchange keeps the bound (bounded_exchange.h). This choice only decides how often an exchange is
// repeated and how many bytes it has. The first sum of a size starts with the codec that would do
// for normally distributed values. Later sums start with the codec that passed last. A coarser
// codec is tried when the errors of several sums in a row leave room for it. After each failed try,
// twice as many sums are needed.
//
// All ranks choose the same codec, because they record the codecs that they agreed on.
#pragma once
#include <array>
#include <cstdint>

#include "comm/communicator.h"
#include "kernels/format.h"

namespace slimpi::algorithm {

// The codecs that SLIMPI_MAX_ERROR chooses from, cheapest first: quantizers of 1 to 16 bits, a
// short value codec, the exact one. The ranks send each other a codec as its index in this list.
constexpr int kQuantizers = kernels::kMostBits, kCodecs = kQuantizers + 2;
constexpr int kUncompressed = kCodecs - 1;

// Returns the format of codec `index`. The quantizers have the buckets and the rounding of
// `quantizer`.
kernels::Format codec_at(const kernels::Format& quantizer, int index);

// Returns whether a sum of absolute value `peak` is finite in codec `index`.
bool holds(int index, double peak);

// Returns the codec for the next sum of this kind, after codec `index` had `excess` times the error
// that SLIMPI_MAX_ERROR allows. If excess > 1, it is a finer codec, with which this sum is
// repeated: the cheapest quantizer that is finer by this factor, judged by its number of levels. If
// there is no such quantizer, it is the short value codec, or the exact codec if the rounding of
// the short codec cannot keep `max_error` or if it cannot hold a sum of absolute value `peak`. If
// excess <= 1, it is the coarsest codec that is worth a try. An error of the last two codecs says
// nothing about the error of a quantizer, so after these it is the next codec in the list.
int next_codec(int index, double excess, double max_error, double peak);

// Returns the cheapest codec that is likely to keep `max_error` for normally distributed values.
int codec_for_normal_values(double max_error);

// The choice for the sums of one size.
class CodecChoice {
 public:
  // Returns the codec to start with.
  int first(double max_error) const;

  // Records a sum that began with codec `first` and ended with codec `last`, whose error would also
  // allow `coarsest`.
  void passed(int first, int last, int coarsest);

 private:
  static constexpr int kFewest = 4, kMost = 256;  // fewest, most sums before a coarser try

  int codec_ = -1;        // -1: no sum yet
  int coarsest_ = 0;      // coarsest codec allowed by the errors of all counted sums
  int sums_ = 0;          // sums since codec_ was set
  int needed_ = kFewest;  // counted sums before a coarser codec is tried
};

// The choices of a communicator, by size. Two sizes may share one choice. That costs bytes or
// repeated exchanges, but a call allocates no memory.
class CodecChoices : public comm::Attachment {
 public:
  CodecChoice& of(std::uint64_t count);

 private:
  void options_changed() override { choices_ = {}; }

  std::array<CodecChoice, 256> choices_;
};

}  // namespace slimpi::algorithm
