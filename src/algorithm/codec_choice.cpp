// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/codec_choice.h"

#include <algorithm>

#include "algorithm/codec_list.h"
#include "base/hash.h"

namespace slimpi::algorithm {

int CodecChoice::first(double max_error) const {
  return codec_ >= 0 ? codec_ : codec_for_normal_values(max_error);
}

void CodecChoice::passed(int first, int last, int coarsest) {
  if (last != first) {
    // The codec that this choice began with was too coarse.
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
