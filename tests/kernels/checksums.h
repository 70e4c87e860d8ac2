// SPDX-License-Identifier: BSD-3-Clause
// Checksums of encoded and decoded pieces, which every code path and every GPU must meet. A change
// here is a change of the format: raise the version of the message header with it.
#pragma once
#include "tests/kernels/data.h"

namespace slimpi::test {

constexpr std::size_t kChecksumCount = 9001;
constexpr kernels::RandomStream kChecksumDraw{0x123456789abcdef0u, 5, 17, 3};

// Ordinary values, with a constant range, zeros, tiny, huge and far-off ranges, a NaN and an
// infinity, each in buckets of its own at 100 and at 64 elements.
inline float checksum_input(std::size_t i) {
  const float value = bell(2024, i);
  if (i == 700) return from_bits(0x7f800001);
  if (i == 1500) return from_bits(0xff800000);
  if (i >= 2000 && i < 2300) return 0.1f;
  if (i >= 2300 && i < 2600) return i % 2 == 0 ? 0.0f : from_bits(0x80000000);
  if (i >= 3000 && i < 3300) return value * 0x1p-135f;
  if (i >= 3600 && i < 3900) return value * 0x1p126f;
  if (i >= 4200 && i < 4500) return value + 66000.0f;
  return i % 11 == 0 ? 0.0f : value;
}

struct Checksum {
  kernels::Format format;
  std::uint64_t coded, decoded;
};

using kernels::Codec;
constexpr Checksum kChecksums[] = {
    {{Codec::float32, 8, false, 2048}, 0xcfb51bb2813f5bc6, 0xcfb51bb2813f5bc6},
    {{Codec::fp16, 8, false, 2048}, 0x10e1fe00f669aba0, 0x0fe8058fbc41dc32},
    {{Codec::bf16, 8, false, 2048}, 0x5211290c1db1226c, 0xf92159d02dc3b63c},
    {{Codec::quantized, 1, false, 64}, 0x1cee3a40a980c33a, 0xf71bb0029c677874},
    {{Codec::quantized, 1, false, 100}, 0xaf9c69015d31b04b, 0x03760157a895719c},
    {{Codec::quantized, 1, false, 2048}, 0x7c41a17a09c42f96, 0x419f88ce0682e9d8},
    {{Codec::quantized, 1, true, 100}, 0x580b48e324d6d13b, 0x5f442f43c3023b6a},
    {{Codec::quantized, 2, false, 64}, 0x8ce8e54b479ae429, 0x6586e65e6dbe04ea},
    {{Codec::quantized, 2, false, 100}, 0x3fcdde030f81f7a2, 0xffc3f33cecd7ed45},
    {{Codec::quantized, 2, false, 2048}, 0xc33665ccbeb1e15e, 0x3db34146f11be8a1},
    {{Codec::quantized, 2, true, 2048}, 0x59c446bdcc655390, 0x3906c8bfc9d05e26},
    {{Codec::quantized, 3, false, 64}, 0x20931db343f12f18, 0x83819b6583f6c5cd},
    {{Codec::quantized, 3, false, 100}, 0x2cd1413c601a64fe, 0x7fc76a823ddfea03},
    {{Codec::quantized, 3, false, 2048}, 0x857e8d144063fd08, 0xff7bf1a45a8915a4},
    {{Codec::quantized, 3, true, 100}, 0x721728090453f6ab, 0xae978ec9830946b1},
    {{Codec::quantized, 4, false, 64}, 0x99380504e1ad0b21, 0xe67c952927544d21},
    {{Codec::quantized, 4, false, 100}, 0x1e70320946c9bc36, 0x2d205a1d26269475},
    {{Codec::quantized, 4, false, 2048}, 0x8a2be429b572deaf, 0xed5c01feb7080fce},
    {{Codec::quantized, 4, true, 2048}, 0x79e57415fd041e93, 0xcfdce9b45c4455ee},
    {{Codec::quantized, 5, false, 64}, 0xe2870cd7faff489c, 0xd601a2ded6fb1373},
    {{Codec::quantized, 5, false, 100}, 0x88d5502f360473cb, 0x8efca98e016fc9fd},
    {{Codec::quantized, 5, false, 2048}, 0x41b97dc8d08277ae, 0x016efa6ee69bb514},
    {{Codec::quantized, 5, true, 100}, 0x8fa1a5a062dd76fe, 0x5e474f2e49507f28},
    {{Codec::quantized, 6, false, 64}, 0x502d8db61c9bb914, 0xf10976de1e6c0b23},
    {{Codec::quantized, 6, false, 100}, 0xe698bce1832f7d6a, 0xbc9d517a73a11e30},
    {{Codec::quantized, 6, false, 2048}, 0x81bf62d412d93099, 0x627834f758bd2ac8},
    {{Codec::quantized, 6, true, 2048}, 0x1f545056800e2e63, 0xc99f322b0143a1d4},
    {{Codec::quantized, 7, false, 64}, 0x8f07e155ded885e8, 0xbe2aa883b7deeff8},
    {{Codec::quantized, 7, false, 100}, 0x8215b0a6cc9d83e1, 0x91215b5c4bf4838f},
    {{Codec::quantized, 7, false, 2048}, 0xb1ce7380cc27bed4, 0xfe49d62929288f19},
    {{Codec::quantized, 7, true, 100}, 0x68ce7b0166be0134, 0x02ed0d93569c471a},
    {{Codec::quantized, 8, false, 64}, 0x5b10b6a80e68cee7, 0x6ddad19022ba0c39},
    {{Codec::quantized, 8, false, 100}, 0x172ae650d1c81ac7, 0x2615ff3b437db58d},
    {{Codec::quantized, 8, false, 2048}, 0x2bdd7247881b227f, 0x4c850fb984837886},
    {{Codec::quantized, 8, true, 2048}, 0x692d83d74c59fb3b, 0x7b5dbeb7861d4695},
    {{Codec::quantized, 8, false, 0}, 0x5ab6e585d2710265, 0x0ae5e8fd7b8b83d8},
    {{Codec::quantized, 9, false, 64}, 0x50da4f19ea2f6392, 0x04b3659e165510f3},
    {{Codec::quantized, 12, false, 100}, 0x715d19171762bc20, 0xf02f5118e18f55c6},
    {{Codec::quantized, 12, true, 2048}, 0xc95c12850276e374, 0xd830fc87a15808b0},
    {{Codec::quantized, 15, false, 2048}, 0xf5663420c19b0be6, 0xa2d153bc64d69f6f},
    {{Codec::quantized, 16, false, 100}, 0x7beac7b16c1422b5, 0xaf072e58aaacf641},
    {{Codec::quantized, 16, false, 2048}, 0xf74313bc4925776d, 0x118e2de45de941a6},
    {{Codec::quantized, 16, true, 2048}, 0x13173ee98f9d8f56, 0x09ef1464de3aab69},
    {{Codec::packed, 2, false, 64}, 0x0b708e2a423bbcc1, 0x8f7a2b4f7163c57b},
    {{Codec::packed, 2, false, 1024}, 0x2c1dd325aee6f6da, 0xc39d535d8e57486d},
    {{Codec::packed, 3, false, 2048}, 0xda6cf70e00121939, 0xf955b7038947f61a},
    {{Codec::packed, 5, false, 1024}, 0xc652e7704fc28274, 0x2018945bc369b7c8},
    {{Codec::packed, 5, false, 65536}, 0x4fdfb8095ef1d702, 0x8abc1acfa7953e30},
    {{Codec::packed, 8, false, 512}, 0xb84dbbcd232dc877, 0xe6cda3c86d5661fd},
    {{Codec::packed, 11, false, 2048}, 0xd3c050ad16604d33, 0xb94c90f529cd5272},
    {{Codec::packed, 16, false, 64}, 0x04e20591636b7d6a, 0x372ee892ae96552d},
    {{Codec::packed, 16, false, 1024}, 0x157b82e07a03aad7, 0x198f0691d4dd0b11},
    {{Codec::packed, 25, false, 1024}, 0x02072e1839f0da1d, 0x6722a1a6701f85e8},
    {{Codec::packed, 32, false, 512}, 0x958e76bb2854bbfb, 0xd658779fef329361},
};

}  // namespace slimpi::test
