// SPDX-License-Identifier: BSD-3-Clause
// THE table of codecs: what encodes the values of a message between nodes. Included by host and
// CUDA code. Loops, sizes, the names of the report, the bits of the trace and the tests of all
// paths come from here. To choose a codec by SLIMPI_ALGORITHM it also takes a row of
// src/options/algorithms.def (CONTRIBUTING.md).
//
// A value codec encodes each value by itself. It is a header of kernels/math, included here, and a
// row. The header defines
//   struct TYPE { using Value = ...; };       an encoded value in memory, little endian
//   Value encode_value(TYPE, float)           any NaN to one NaN
//   float decode_value(TYPE, Value)           any NaN to kNanBits
//   float spacing(TYPE, float value)          at least the distance of the encodable values around
//                                             this one, and no more than 3 times that; 0 where
//                                             value + spacing may overflow, and where nothing is
//                                             lost
// for host and CUDA, without branches, so that loops over them vectorize. Rows:
//   X(name, number, TYPE, bits, greatest, infinity)
//     name      in the report and the trace
//     number    of the message header; never changes. 3 is `quantized`, 4 `packed`, 255 a hook
//     bits      of an encoded value: 8, 16 or 32
//     greatest  finite value
//     infinity  what +infinity is encoded as, so that the report counts values that became
//               infinite; 0 where they are not counted: values of other lengths than 16 bits
#pragma once
#include <cstdint>

#include "kernels/math/bf16.h"
#include "kernels/math/float32.h"
#include "kernels/math/fp16.h"

#define SLIMPI_VALUE_CODECS(X)                   \
  X(float32, 0, Float32, 32, 0x1.fffffep127f, 0) \
  X(fp16, 1, Fp16, 16, 65504.0f, 0x7c00)         \
  X(bf16, 2, Bf16, 16, 0x1.fep127f, 0x7f80)

namespace slimpi::kernels {

enum class Codec : std::uint8_t {
  quantized = 3,  // buckets of values that share a scale; math/quantizer.h
  packed = 4,     // short buckets that get bits by their scales; math/packed.h
#define SLIMPI_ROW(name, number, Type, bits, greatest, infinity) name = number,
  SLIMPI_VALUE_CODECS(SLIMPI_ROW)
#undef SLIMPI_ROW
};

struct CodecRow {
  Codec codec;
  const char* name;
  float greatest;
  std::uint16_t infinity;
};

constexpr CodecRow kValueCodecs[] = {
#define SLIMPI_ROW(name, number, Type, bits, greatest, infinity) \
  {Codec::name, #name, greatest, infinity},
    SLIMPI_VALUE_CODECS(SLIMPI_ROW)
#undef SLIMPI_ROW
};
constexpr CodecRow kBucketCodecs[] = {{Codec::quantized, "quantized", 0x1.fffffep127f, 0},
                                      {Codec::packed, "packed", 0x1.fffffep127f, 0}};

// For the host.
constexpr const CodecRow& row_of(Codec codec) {
  for (const CodecRow& row : kValueCodecs)
    if (row.codec == codec) return row;
  return kBucketCodecs[codec == Codec::packed ? 1 : 0];
}

// Bits of an encoded value of a value codec.
SLIMPI_HD int value_bits(Codec codec) {
#define SLIMPI_ROW(name, number, Type, bits, greatest, infinity)                      \
  static_assert(8 * sizeof(Type::Value) == bits, #name ": Value has another length"); \
  if (codec == Codec::name) return bits;
  SLIMPI_VALUE_CODECS(SLIMPI_ROW)
#undef SLIMPI_ROW
  return 0;
}

}  // namespace slimpi::kernels
