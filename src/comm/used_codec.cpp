// SPDX-License-Identifier: BSD-3-Clause
#include "comm/used_codec.h"

namespace slimpi::comm {

UsedCodec used_codec(const kernels::Format& format) {
  if (format.codec == kernels::Codec::quantized) return UsedCodec(format.bits - 1);
  if (format.codec == kernels::Codec::packed) return kPackedCodec;
  return UsedCodec(kQuantizedKeys +
                   std::size_t(&kernels::row_of(format.codec) - kernels::kValueCodecs));
}

std::vector<std::string> used_codec_names() {
  std::vector<std::string> names;
  for (std::size_t bits = 1; bits <= kQuantizedKeys; ++bits) names.push_back(std::to_string(bits));
  for (const kernels::CodecRow& row : kernels::kValueCodecs) names.emplace_back(row.name);
  names.emplace_back("packed");
  names.emplace_back("low_rank");
  names.emplace_back("hook");
  return names;
}

}  // namespace slimpi::comm
