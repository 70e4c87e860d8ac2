// SPDX-License-Identifier: BSD-3-Clause
// All arithmetic on vectors, as tables of functions: one table for each instruction set of the CPU,
// and one for CUDA. All tables produce the same bytes from the same input, except that the last
// bits of `compare` and of CUDA's `multiply` may differ.
//
// The pointers refer to memory of the table's device, where floats and encoded segments are aligned
// to 4 bytes; count may be 0. A function of a GPU's table is queued on `stream`; a host's function
// ignores `stream` and is complete on return. No function allocates.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/format.h"
#include "kernels/math/float64.h"

namespace slimpi::device {
struct Stream;
}

namespace slimpi::kernels {

using device::Stream;

// One input of a sum: an encoded segment or, if `encoded` is null, floats. With Codec::float64 the
// memory of these floats holds doubles.
struct Addend {
  const std::byte* encoded = nullptr;
  const float* exact = nullptr;
};

constexpr int kMaxAddends = 16;  // the most addends of one call; callers split longer sums

// Two thin factors, whose product p^T q approximates a matrix of rows x columns.
struct LowRank {
  const float* p = nullptr;
  const float* q = nullptr;
  int rank = 1;  // at most kMaxRank
  std::size_t rows = 0, columns = 0;
};
constexpr int kMaxRank = 64;

// The greatest finite float.
constexpr float kMaxFloat = 0x1.fffffep127f;

// The arguments of Kernels::multiply, which computes c += a * b. All matrices are row-major: c is
// rows x columns, a is rows x inner, and b is inner x columns, or columns x inner if `transposed`.
// `lda`, `ldb` and `ldc` are the distances between rows, in floats.
struct Product {
  int transposed = 0;
  int rows = 0, columns = 0, inner = 0;
  const float* a = nullptr;
  int lda = 0;
  const float* b = nullptr;
  int ldb = 0;
  float* c = nullptr;
  int ldc = 0;
};

struct Kernels {
  const char* name;  // "generic", "avx2", "avx512", "cuda"

  // out = encode(in + e), where e is the residual (what earlier calls lost), clamped as
  // math/feedback.h says, or 0 if `residual` is null. The new residual is then in + e -
  // decode(out), except where values are not finite: a bucket with a value of this kind keeps its
  // residuals, and with a value codec the value keeps its own. Writes all encoded_bytes(format,
  // count) bytes of `out`, which must not overlap `in`.
  void (*encode)(const Format& format, const RandomStream& random, const float* in, float* residual,
                 std::size_t count, std::byte* out, Stream* stream);

  // out = decode(in).
  void (*decode)(const Format& format, const std::byte* in, std::size_t count, float* out,
                 Stream* stream);

  // out += decode(in).
  void (*decode_add)(const Format& format, const std::byte* in, std::size_t count, float* out,
                     Stream* stream);

  // Sums and encodes a chunk (the part of a vector that one node sums) for its owner, in one pass:
  //   total = ((addend 0 + addend 1) + addend 2) + ..., in this order, in float32; if `carry` is
  //           not null, ((carry + addend 0) + addend 1) + ...
  //   out = encode(total + e), with `residual` and e as in `encode`
  //   result = decode(out)
  // If `out` is null, the only output is result = total, uncompressed. `result` may be the memory
  // of an addend of floats. Codec::float64 adds doubles, and `residual` is then null. Only the
  // host's tables support this codec, in the four functions that take a format. For sums near the
  // greatest float see is_near_overflow() and saturated_sum() in math/quantizer.h.
  void (*sum_encode)(const Format& format, const RandomStream& random, const Addend* addends,
                     int addend_count, const float* carry, float* residual, std::size_t count,
                     std::byte* out, float* result, Stream* stream);

  // out = ((in[0] + in[1]) + in[2]) + ..., at most kMaxAddends inputs. `out` may be an input.
  void (*sum)(const float* const* in, int in_count, std::size_t count, float* out, Stream* stream);

  // out = a * x + b * y elementwise: each product is rounded, then the sum. `out` may be x or y. If
  // b = 0, out = a * x, and y is not read. Any NaN becomes kNanBits.
  void (*combine)(float a, const float* x, float b, const float* y, std::size_t count, float* out,
                  Stream* stream);

  // Sets *found, in memory of this device, to whether any element is NaN or has a magnitude above
  // limit.
  void (*find_beyond)(const float* in, float limit, std::size_t count, int* found, Stream* stream);

  // result[0] = sum of (a - b)^2, result[1] = sum of b^2, in double, in memory of this device. The
  // order of the additions is fixed within a table but differs between tables, so the last bits may
  // differ.
  void (*compare)(const float* a, const float* b, std::size_t count, double* result,
                  Stream* stream);

  // out = value, for all elements.
  void (*fill)(float* out, float value, std::size_t count, Stream* stream);

  // The last step of a low-rank sum, for the first `count` of the rows * columns elements:
  //   out[i] = sum over k, ascending from +0, of p[k][i / columns] * q[k][i % columns]
  //   residual = (in + residual) - share * out, or 0 where that is not finite; unless `residual` is
  //              null. `share` is 1 / (number of ranks)
  // p is `rank` rows of `rows` floats, q is `rank` rows of `columns` floats. `in` may be `out`;
  // without a residual `in` is not read.
  void (*low_rank)(const LowRank& factors, const float* in, float share, float* residual,
                   std::size_t count, float* out, Stream* stream);

  // Multiplies matrices. All tables of the host produce the same bytes for finite numbers. The CUDA
  // table calls cuBLAS, which is loaded at the first call, and whose rounding depends on the
  // machine. Returns false without any other effect if the library is missing or fails to start; a
  // caller that only wants to test this passes a Product with rows = 0. Null in a table that never
  // multiplies.
  bool (*multiply)(const Product& product, Stream* stream) = nullptr;

  // Adds the inputs like `sum`, but in the order of a tree. Of n = 2^k + r inputs (r < 2^k) the
  // first 2r are added in pairs, so that 2^k numbers remain; then neighbors are added, level by
  // level, until one number remains. Null in the host's tables, whose caller builds the same sum
  // from sums of two inputs (add_in_pairs()).
  void (*pair_sum)(const float* const* in, int in_count, std::size_t count, float* out,
                   Stream* stream) = nullptr;

  // out = in, rounded to floats. Stops at a block whose values float32 cannot hold, as
  // kernels/math/float64.h defines; then *holds is false and the rest of `out` undefined. `narrow`
  // and `widen` are null in tables that take no doubles.
  void (*narrow)(const double* in, std::size_t count, const Float64Limits& limits, float* out,
                 bool* holds, Stream* stream) = nullptr;
  // out = in, as doubles.
  void (*widen)(const float* in, std::size_t count, double* out, Stream* stream) = nullptr;
};

}  // namespace slimpi::kernels
