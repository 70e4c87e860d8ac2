// SPDX-License-Identifier: BSD-3-Clause
// Which codec a sum under SLIMPI_MAX_ERROR is exchanged with first. The bound itself is kept by the
// check after the exchange (bounded_exchange.h); this choice only decides how often an exchange is
// repeated and how many bytes it has. The first sum of a size starts with the codec that would do
// for normally distributed values. Later ones start with the codec that passed last. A coarser one
// is tried when the errors of several sums in a row leave room for it, and after each try that
// failed, twice as many.
//
// All ranks choose alike: they record the same codecs, which they agreed on.
#pragma once
#include <array>
#include <cstdint>

#include "comm/attachment.h"

namespace slimpi::algorithm {

// Of the sums of one size.
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
  int coarsest_ = 0;      // that the errors of all counted sums allow
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
