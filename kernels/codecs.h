// SPDX-License-Identifier: BSD-3-Clause
// The table of codecs, which are the ways to encode the values of a message between nodes. The
// loops of the host and of CUDA, the encoded sizes, the names in the report, the bits in the trace
// and the tests are generated from this table. A codec that SLIMPI_ALGORITHM can choose also needs
// a row in src/options/algorithms.def (CONTRIBUTING.md).
//
// A value codec encodes each value by itself. It consists of a row here and a header in
// kernels/math, included below. The header defines the following for host and CUDA, without
// branches, so that loops over these functions vectorize:
//   struct TYPE { using Value = ...; };       an encoded value in memory, little endian
//   Value encode_value(TYPE, float)           maps all NaNs to one NaN; float32 changes nothing
//   float decode_value(TYPE, Value)           maps all NaNs to kNanBits; float32 changes nothing
//   float spacing(TYPE, float value)          1 to 3 times the distance between the two encodable
//                                             values around `value`; 0 if value + spacing may
//                                             overflow, or if encoding loses nothing
// A row is X(name, number, TYPE, bits, greatest, infinity):
//   name      the codec in the report and the trace
//   number    identifies the codec in the message header, so it never changes. 3 to 5 are in enum
//             Codec below; 255 is a hook
//   bits      the length of an encoded value: 8, 16 or 32
//   greatest  the greatest finite value
//   infinity  the bits of the encoded +infinity of a 16-bit codec, whose infinities the report
//             counts; 0 for the other codecs
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
  packed = 4,     // short buckets, the wider the larger their scale; math/packed.h
  float64 = 5,    // doubles, unchanged, each in the memory of two floats. Host only
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
constexpr CodecRow kOtherCodecs[] = {{Codec::quantized, "quantized", 0x1.fffffep127f, 0},
                                     {Codec::packed, "packed", 0x1.fffffep127f, 0},
                                     {Codec::float64, "float64", 0x1.fffffep127f, 0}};

// Returns the row of a codec. Host only.
constexpr const CodecRow& row_of(Codec codec) {
  for (const CodecRow& row : kValueCodecs)
    if (row.codec == codec) return row;
  for (const CodecRow& row : kOtherCodecs)
    if (row.codec == codec) return row;
  return kOtherCodecs[0];
}

// Returns the number of bits per encoded value, 32 for float64, because each double counts as two
// values. Returns 0 if values share a header, so that the bits per value depend on the segment.
SLIMPI_HD int value_bits(Codec codec) {
  if (codec == Codec::float64) return 32;
#define SLIMPI_ROW(name, number, Type, bits, greatest, infinity)                      \
  static_assert(8 * sizeof(Type::Value) == bits, #name ": Value has another length"); \
  if (codec == Codec::name) return bits;
  SLIMPI_VALUE_CODECS(SLIMPI_ROW)
#undef SLIMPI_ROW
  return 0;
}

}  // namespace slimpi::kernels
