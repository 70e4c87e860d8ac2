// SPDX-License-Identifier: BSD-3-Clause
// What the launchers and the CUDA kernels have to know of each other: the kernels' names and the
// one structure that each takes. Plain data, so that a launch is a copy of bytes.
#pragma once
#include "kernels/kernels.h"

namespace slimpi::kernels::cuda {

// Threads of every block.
constexpr int kThreads = 256;

// A bucket is worked on by a team of threads: a warp, or the whole block. Each thread of the team
// keeps up to so many of its values in registers.
constexpr int kWarpThreads = 32, kWarpValues = 16, kBlockValues = 8;
constexpr std::uint32_t kWarpElements = kWarpThreads * kWarpValues;  // the longest bucket of a warp
constexpr std::uint32_t kTileElements = kThreads * kBlockValues;     // and of a block
constexpr int kWarpsOfBlock = kThreads / kWarpThreads;

// Elements that a thread of an elementwise kernel works on.
constexpr int kElementsOfThread = 4;
constexpr std::uint32_t kElementsOfBlock = kThreads * kElementsOfThread;

// A quantized piece, and how it is cut: a bucket longer than a block can hold is cut into tiles of
// kTileElements. A team works on one tile; tile t of bucket b is number b * tiles + t.
struct Payload {
  Format format;
  std::uint64_t count;
  std::uint64_t bucket;        // elements of a bucket, but for the last
  std::uint64_t bucket_bytes;  // its encoded size
  std::uint32_t tiles;         // of a bucket
  std::uint32_t steps;         // tiles of the whole piece
};

// out = code(in + residual), or of the sum of the addends; see Kernels::encode and sum_encode.
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
  Addend addends[kMaxAddends + 1];  // the carry, if there is one, is the first of them
  int addend_count;
  float* residual;
  std::byte* out;
  float* result;
};

// The second pass over buckets that a block cannot hold. The header is in its place; `added`,
// `lost` and `decoded` may be null. See kernels/cpu/buckets.h, which has the same.
struct PackArguments {
  Payload payload;
  RandomStream random;
  const float* in;
  const float* added;
  float* lost;
  float* decoded;
  std::byte* out;
};

// Both `out = decode(in)` and `out += decode(in)`.
struct DecodeArguments {
  Payload payload;
  const std::byte* in;
  float* out;
};

// Floats and 16-bit floats: a sum of pieces in one codec or exact; see Kernels::sum_encode and sum.
struct PlainSumArguments {
  Codec codec;
  std::uint64_t count;
  Addend addends[kMaxAddends + 1];
  int addend_count;
  float* residual;
  std::byte* out;
  float* result;
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

// Each block leaves two sums in `partial`; a second kernel adds them up.
constexpr int kCompareBlocks = kThreads;
struct CompareArguments {
  const float *a, *b;
  std::uint64_t count;
  double* partial;  // 2 * kCompareBlocks
  double* result;
};

// Rows of a low-rank product that a thread works on, each in one column.
constexpr int kLowRankRows = 8;
struct LowRankArguments {
  LowRank factors;
  const float* in;
  float share;
  float* residual;
  std::uint64_t count;
  float* out;
  std::uint32_t column_tiles;  // of kThreads columns
};

// Every kernel: its module (a file of kernels/cuda), name, and structure.
#define SLIMPI_CUDA_KERNELS(X)                        \
  X(encode, encode_warp_nearest, EncodeArguments)     \
  X(encode, encode_warp_stochastic, EncodeArguments)  \
  X(encode, encode_block_nearest, EncodeArguments)    \
  X(encode, encode_block_stochastic, EncodeArguments) \
  X(encode, start_extremes, EncodeArguments)          \
  X(encode, encode_extremes, EncodeArguments)         \
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
  X(plain, plain_sum, PlainSumArguments)              \
  X(plain, plain_decode, PlainDecodeArguments)        \
  X(plain, combine, CombineArguments)                 \
  X(plain, fill, FillArguments)                       \
  X(plain, find_beyond, FindArguments)                \
  X(plain, compare, CompareArguments)                 \
  X(plain, compare_end, CompareArguments)             \
  X(plain, low_rank, LowRankArguments)

}  // namespace slimpi::kernels::cuda
