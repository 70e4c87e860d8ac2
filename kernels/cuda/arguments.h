// SPDX-License-Identifier: BSD-3-Clause
// The interface between the CUDA kernels and src/device/cuda, which launches them: the name of each
// kernel, and the structure that is its only argument. The structures are plain data, because a
// launch copies their bytes.
#pragma once
#include "kernels/kernels.h"

namespace slimpi::kernels::cuda {

// The threads of every block.
constexpr int kThreads = 256;

// The threads that work on one bucket are a team: a warp, or the whole block. Each thread of a team
// keeps up to kWarpValues or kBlockValues values of the bucket in registers.
constexpr int kWarpThreads = 32, kWarpValues = 16, kBlockValues = 8;
constexpr std::uint32_t kWarpElements =
    kWarpThreads * kWarpValues;                                   // the longest bucket for a warp
constexpr std::uint32_t kTileElements = kThreads * kBlockValues;  // the longest bucket for a block
constexpr int kWarpsOfBlock = kThreads / kWarpThreads;

// The elements that one thread of an elementwise kernel processes.
constexpr int kElementsOfThread = 4;
constexpr std::uint32_t kElementsOfBlock = kThreads * kElementsOfThread;

// A quantized segment and how it is divided among teams of threads, each of which processes one
// tile. A bucket too long for a block is divided into tiles of kTileElements; any other bucket is
// one tile. Tile t of bucket b has the number b * tiles + t.
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
  Addend addends[kMaxAddends + 1];  // begins with the carry, if there is one
  int addend_count;
  float* residual;
  std::byte* out;
  float* result;
};

// The arguments of `pack`, the last pass over buckets too long for one block of threads. Earlier
// passes have written the header and clamped `added`. `added`, `residual` and `decoded` are those
// of Values in kernels/cpu/buckets.h, and may be null.
struct PackArguments {
  Payload payload;
  RandomStream random;
  const float* in;
  const float* added;
  float* residual;
  float* decoded;
  std::byte* out;
};

// The arguments of Kernels::decode and decode_add of quantized segments.
struct DecodeArguments {
  Payload payload;
  const std::byte* in;
  float* out;
};

// The arguments of Kernels::encode, sum_encode and sum with a value codec. Each addend is a segment
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

// A packed segment and how it is divided among blocks of threads, each of which processes a slice:
// kPackedSlice consecutive values of a tile. The last tile may be shorter than the others.
constexpr std::uint32_t kPackedSlice = kTileElements;
struct PackedTile {
  std::uint32_t count, buckets;
  std::uint32_t bytes, header_bytes, units;
};
struct PackedShape {
  PackedTile whole, last;
  std::uint32_t last_number;  // the number of the last tile in the segment
  std::uint32_t slices;       // the number of slices in a whole tile
};

// The arguments of the kernels that sum or encode packed segments. To encode floats without a sum,
// `result` is null and the floats are the only addend.
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
// The arguments of Kernels::pair_sum. `surplus` is how many addends there are beyond the greatest
// power of two that does not exceed their number.
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

// The arguments of Kernels::compare. Each block of a first kernel writes two sums to `partial`; a
// second kernel adds those of all blocks.
constexpr int kCompareBlocks = kThreads;
struct CompareArguments {
  const float *a, *b;
  std::uint64_t count;
  double* partial;  // has 2 * kCompareBlocks elements
  double* result;
};

// The rows of a low-rank product that one thread processes, all in the same column.
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

// All kernels: the module (a file of kernels/cuda), the name, and the structure of the arguments.
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
