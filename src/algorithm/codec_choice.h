// SPDX-License-Identifier: BSD-3-Clause
// Which codec a sum under SLIMPI_MAX_ERROR is exchanged with first. The bound itself is kept by the
// check after the exchange (bounded_exchange.h); this choice only decides how often an exchange is
// repeated and how many bytes it has. The first sum of a size starts with the codec that would do
// for normally distributed values. Later ones start with the codec that passed last. A coarser one
// is tried when the errors of several sums in a row leave room for it, and after each try that
// failed, twice as many.
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

// The format of codec `index`. The quantizers have the buckets and the rounding of `quantizer`.
kernels::Format codec_at(const kernels::Format& quantizer, int index);

// Whether a sum of absolute value `peak` is finite in codec `index`.
bool holds(int index, double peak);

// The codec for the next sum like one that codec `index` did with `excess` times the error that
// SLIMPI_MAX_ERROR allows. Above 1 it is a finer one, and this sum is repeated with it: the
// cheapest quantizer that is finer by this factor, judged by its number of levels; where there is
// none, the short value codec, or where its rounding cannot keep `max_error` or it cannot hold a
// sum of absolute value `peak`, the exact one. At 1 or below it is the coarsest that is worth a
// try. An error of the last two codecs says nothing about a quantizer's, so after these it is the
// next one in the list.
int next_codec(int index, double excess, double max_error, double peak);

// The cheapest codec that is likely to keep `max_error` for normally distributed values.
int codec_for_normal_values(double max_error);

// The choice for the sums of one size.
class CodecChoice {
 public:
  // The codec to start with.
  int first(double max_error) const;

  // A sum began with codec `first` and ended with codec `last`, whose error would also allow
  // `coarsest`.
  void passed(int first, int last, int coarsest);

 private:
  static constexpr int kFewest = 4, kMost = 256;  // sums before a coarser codec is tried

  int codec_ = -1;        // -1: no sum yet
  int coarsest_ = 0;      // allowed by the errors of all counted sums
  int sums_ = 0;          // counted since codec_ was set
  int needed_ = kFewest;  // such sums before a coarser codec is tried
};

// The choices of a communicator, by size. Two sizes may share one, which costs bytes or repeated
// exchanges, and no memory is allocated in a call.
class CodecChoices : public comm::Attachment {
 public:
  CodecChoice& of(std::uint64_t count);

 private:
  void options_changed() override { choices_ = {}; }

  std::array<CodecChoice, 256> choices_;
};

}  // namespace slimpi::algorithm
