// SPDX-License-Identifier: BSD-3-Clause
// What encoded the values of a compressed call, for the statistics and the report: 1 to 16 bits,
// the value codecs of kernels/codecs.h, packed, two thin factors, or a hook.
#pragma once
#include <iterator>
#include <string>
#include <vector>

#include "kernels/format.h"
#include "observe/statistics.h"

namespace slimpi::comm {

constexpr std::size_t kQuantizedKeys = kernels::kMostBits,
                      kValueKeys = std::size(kernels::kValueCodecs);
constexpr UsedCodec kPackedCodec{kQuantizedKeys + kValueKeys},
    kLowRankCodec{kQuantizedKeys + kValueKeys + 1}, kHookCodec{kQuantizedKeys + kValueKeys + 2};
static_assert(std::size_t(kHookCodec) < kMostCodecs, "raise kMostCodecs of observe/statistics.h");

UsedCodec used_codec(const kernels::Format& format);

// In the order of UsedCodec: the keys of the report.
std::vector<std::string> used_codec_names();

}  // namespace slimpi::comm
