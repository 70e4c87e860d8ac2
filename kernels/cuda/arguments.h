// SPDX-License-Identifier: BSD-3-Clause
// The interface between the launchers and the CUDA kernels: the name of each kernel and the
// structure that it takes as its only argument. The structures are plain data, because a launch
// copies their bytes.
#pragma once
#include "kernels/kernels.h"

namespace slimpi::kernels::cuda {

// Threads of every block.
constexpr int kThreads = 256;

// A team of threads works on a bucket: a warp, or the whole block. Each thread of the team keeps up
// to kWarpValues or kBlockValues of the bucket's values in registers.
constexpr int kWarpThreads = 32, kWarpValues = 16, kBlockValues = 8;
constexpr std::uint32_t kWarpElements =
    kWarpThreads * kWarpValues;                                   // the longest bucket for a warp
constexpr std::uint32_t kTileElements = kThreads * kBlockValues;  // the longest bucket for a block
constexpr int kWarpsOfBlock = kThreads / kWarpThreads;

// Elements that one thread of an elementwise kernel processes.
constexpr int kElementsOfThread = 4;
constexpr std::uint32_t kElementsOfBlock = kThreads * kElementsOfThread;

// A quantized segment and its division into tiles. A bucket that is too long for a block is divided
// into tiles of kTileElements; a shorter bucket is one tile. A team processes one tile. Tile t of
// bucket b has the number b * tiles + t.
struct Payload {
  Format format;
  std::uint64_t count;
  std::uint64_t bucket;        // elements of a bucket, except the last
  std::uint64_t bucket_bytes;  // bytes of an encoded bucket, except the last
  std::uint32_t tiles;         // tiles of a bucket
  std::uint32_t steps;         // tiles of the whole segment
};

// The arguments of Kernels::encode and Kernels::sum_encode.
struct EncodeArguments {
  Payload payload;
  RandomStream random;
  const float* in;
  float* residual;
  std::byte* out;
};
struct SumArguments {
  Payload payload;
  RandomStream random;
  Addend addends[kMaxAddends + 1];  // the carry, if there is one, is the first
  int addend_count;
  float* residual;
  std::byte* out;
  float* result;
};

// The arguments of the last pass over buckets that are too long for one block of threads. Earlier
// passes have written the header and clamped `added`. `added`, `residual` and `decoded` mean what
// they mean in kernels/cpu/buckets.h, and may be null.
struct PackArguments {
  Payload payload;
  RandomStream random;
  const float* in;
  const float* added;
  float* residual;
  float* decoded;
  std::byte* out;
};

// The arguments of `out = decode(in)` and of `out += decode(in)`.
struct DecodeArguments {
  Payload payload;
  const std::byte* in;
  float* out;
};

// The arguments of Kernels::encode, sum_encode and sum with a value codec. An addend is a segment
// of that codec, or floats.
struct PlainSumArguments {
  Codec codec;
  std::uint64_t count;
  Addend addends[kMaxAddends + 1];
  int addend_count;
  float* residual;
  std::byte* out;
  float* result;
};

// A packed segment and its division. The last tile may be short. A block of threads processes a
// slice: kPackedSlice consecutive values of a tile.
constexpr std::uint32_t kPackedSlice = kTileElements;
struct PackedTile {
  std::uint32_t count, buckets;
  std::uint32_t bytes, header_bytes, units;
};
struct PackedShape {
  PackedTile whole, last;
  std::uint32_t last_number;  // the number of the last tile
  std::uint32_t slices;       // the slices of a whole tile
};

// The arguments of a sum of packed segments. If `result` is null, there is one addend, of floats.
struct PackedSumArguments {
  PackedShape shape;
  Addend addends[kMaxAddends + 1];
  int addend_count;
  float* residual;
  std::byte* out;
  float* result;
};
struct PackedDecodeArguments {
  PackedShape shape;
  const std::byte* in;
  float* out;
};
// The arguments of Kernels::pair_sum. `surplus`: the number of addends minus the greatest power of
// two that is not above this number.
struct PairSumArguments {
  std::uint64_t count;
  const float* addends[kMaxAddends];
  int addend_count, surplus;
  float* out;
};
struct PlainDecodeArguments {
  Codec codec;
  bool add;
  std::uint64_t count;
  const std::byte* in;
  float* out;
};

struct CombineArguments {
  float a, b;
  const float *x, *y;
  std::uint64_t count;
  float* out;
};
struct FillArguments {
  float value;
  std::uint64_t count;
  float* out;
};
struct FindArguments {
  const float* in;
  float limit;
  std::uint64_t count;
  int* found;
};

// The arguments of Kernels::compare. Each block writes two sums to `partial`; a second kernel adds
// the sums of all blocks.
constexpr int kCompareBlocks = kThreads;
struct CompareArguments {
  const float *a, *b;
  std::uint64_t count;
  double* partial;  // has 2 * kCompareBlocks elements
  double* result;
};

// The rows of a low-rank product that one thread processes; in each row it has one column.
constexpr int kLowRankRows = 8;
struct LowRankArguments {
  LowRank factors;
  const float* in;
  float share;
  float* residual;
  std::uint64_t count;
  float* out;
  std::uint32_t column_tiles;  // tiles of kThreads columns
};

// A row for every kernel: its module (a file of kernels/cuda), its name, and its structure.
#define SLIMPI_CUDA_KERNELS(X)                        \
  X(encode, encode_warp_nearest, EncodeArguments)     \
  X(encode, encode_warp_stochastic, EncodeArguments)  \
  X(encode, encode_block_nearest, EncodeArguments)    \
  X(encode, encode_block_stochastic, EncodeArguments) \
  X(encode, start_extremes, EncodeArguments)          \
  X(encode, encode_extremes, EncodeArguments)         \
  X(encode, limit_residuals, EncodeArguments)         \
  X(encode, residual_extremes, EncodeArguments)       \
  X(encode, end_extremes, EncodeArguments)            \
  X(encode, pack_nearest, PackArguments)              \
  X(encode, pack_stochastic, PackArguments)           \
  X(sum, sum_warp_nearest, SumArguments)              \
  X(sum, sum_warp_stochastic, SumArguments)           \
  X(sum, sum_block_nearest, SumArguments)             \
  X(sum, sum_block_stochastic, SumArguments)          \
  X(sum, sum_warp_exact, SumArguments)                \
  X(sum, sum_block_exact, SumArguments)               \
  X(sum, sum_extremes, SumArguments)                  \
  X(decode, decode_warp, DecodeArguments)             \
  X(decode, decode_block, DecodeArguments)            \
  X(decode, decode_add_warp, DecodeArguments)         \
  X(decode, decode_add_block, DecodeArguments)        \
  X(packed, packed_sum, PackedSumArguments)           \
  X(packed, packed_numbers, PackedSumArguments)       \
  X(packed, packed_plan, PackedSumArguments)          \
  X(packed, packed_feedback, PackedSumArguments)      \
  X(packed, packed_encode, PackedSumArguments)        \
  X(packed, packed_decode, PackedDecodeArguments)     \
  X(packed, packed_decode_add, PackedDecodeArguments) \
  X(plain, plain_sum, PlainSumArguments)              \
  X(plain, plain_decode, PlainDecodeArguments)        \
  X(plain, pair_sum, PairSumArguments)                \
  X(plain, combine, CombineArguments)                 \
  X(plain, fill, FillArguments)                       \
  X(plain, find_beyond, FindArguments)                \
  X(plain, compare, CompareArguments)                 \
  X(plain, compare_end, CompareArguments)             \
  X(plain, low_rank, LowRankArguments)

}  // namespace slimpi::kernels::cuda
