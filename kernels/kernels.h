// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic that slimpi needs, as one table of functions per instruction set of the CPU and
// one for CUDA. All tables give the same bytes for the same input.
//
// Every function takes pointers to memory of its table's device, works in the order of `stream`
// (the host's tables ignore it and are complete on return), does not allocate, and accepts count =
// 0. Pointers to floats need an alignment of 4 bytes only; encoded segments are aligned to 4.
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

// One input of a sum: an encoded segment, or exact floats (encoded = nullptr).
struct Addend {
  const std::byte* encoded = nullptr;
  const float* exact = nullptr;
};

constexpr int kMaxAddends = 16;  // of one sum_encode or sum call; callers chain longer sums

// Two thin factors whose product approximates a matrix of rows x columns.
struct LowRank {
  const float* p = nullptr;
  const float* q = nullptr;
  int rank = 1;  // at most kMaxRank
  std::size_t rows = 0, columns = 0;
};
constexpr int kMaxRank = 64;

// The greatest finite float.
constexpr float kMaxFloat = 0x1.fffffep127f;

// c (rows x columns) += a (rows x inner) * b, all row-major. b is inner x columns, or, transposed,
// columns x inner. `lda`, `ldb` and `ldc` are the distances between rows.
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

  // out = encode(in + e), where e is the residual, clamped to a step of `in` (math/feedback.h).
  // Unless residual is null: residual = in + e - decode(out). The residual of a
  // bucket with a non-finite element stays unchanged. `out` has encoded_bytes(format, count) bytes;
  // all of them are written. `in` may not overlap `out`.
  void (*encode)(const Format& format, const RandomStream& random, const float* in, float* residual,
                 std::size_t count, std::byte* out, Stream* stream);

  // out = decode(in).
  void (*decode)(const Format& format, const std::byte* in, std::size_t count, float* out,
                 Stream* stream);

  // out += decode(in).
  void (*decode_add)(const Format& format, const std::byte* in, std::size_t count, float* out,
                     Stream* stream);

  // The work of a chunk's owner: total = ((addend 0 + addend 1) + addend 2) + ..., in that
  // order, in fp32 (near the greatest float see is_near_overflow and saturated_sum of
  // math/quantizer.h); out = encode(total + e), residual and e as in encode; result = decode(out).
  // One pass over memory. `result` may be the same memory as an exact addend. With `carry` not null
  // the sum starts from carry[] (carry + addend 0 + ...). With `out` null: only result = total,
  // exact.
  void (*sum_encode)(const Format& format, const RandomStream& random, const Addend* addends,
                     int addend_count, const float* carry, float* residual, std::size_t count,
                     std::byte* out, float* result, Stream* stream);

  // out = ((in[0] + in[1]) + in[2]) + ...; out may be any of the inputs. At most kMaxAddends.
  void (*sum)(const float* const* in, int in_count, std::size_t count, float* out, Stream* stream);

  // out = a * x + b * y elementwise (each product is rounded, then the sum); out may be x or y.
  // With b = 0: out = a * x, and y is not read. A NaN in the result is the canonical one.
  void (*combine)(float a, const float* x, float b, const float* y, std::size_t count, float* out,
                  Stream* stream);

  // *found (memory of this device) is set to 1 if any element is NaN, below -limit or above limit,
  // else to 0.
  void (*find_beyond)(const float* in, float limit, std::size_t count, int* found, Stream* stream);

  // result[0] = sum of (a - b)^2, result[1] = sum of b^2, in double (memory of this device). Each
  // table always adds in the same order, but in its own: the last bits may differ between tables.
  void (*compare)(const float* a, const float* b, std::size_t count, double* result,
                  Stream* stream);

  // out = value, for all elements.
  void (*fill)(float* out, float value, std::size_t count, Stream* stream);

  // The last step of a low-rank sum. p is `rank` rows of `rows` floats, q is `rank` rows of
  // `columns`. out[i] = sum over k, ascending from +0, of p[k][i / columns] * q[k][i % columns] for
  // the first `count` of the rows * columns elements. Unless residual is null: residual = (in +
  // residual) - share * out, or 0 where that overflows. `in` may be `out`, and is not read without
  // a residual.
  void (*low_rank)(const LowRank& factors, const float* in, float share, float* residual,
                   std::size_t count, float* out, Stream* stream);

  // A product of matrices. The host's tables give the same bytes for finite numbers. A GPU has it
  // from a library that is loaded at the first call, and whose rounding depends on the machine:
  // false, and nothing done, where there is no such library. A product without rows only tests
  // whether there is one. Null in tables that never have one.
  bool (*multiply)(const Product& product, Stream* stream) = nullptr;

  // As sum, in the order of a tree: of n inputs, r more than a power of two, the first 2r are added
  // in pairs; then neighbors are, level by level. Null in tables that leave it to
  // sums of two.
  void (*pair_sum)(const float* const* in, int in_count, std::size_t count, float* out,
                   Stream* stream) = nullptr;

  // out = in, rounded to floats, until a block shows that float32 cannot hold its values: then
  // *holds is false, and the rest of `out` is not defined. kernels/math/float64.h says what is
  // tested. Both null in tables that take no doubles.
  void (*narrow)(const double* in, std::size_t count, const Float64Limits& limits, float* out,
                 bool* holds, Stream* stream) = nullptr;
  // out = in.
  void (*widen)(const float* in, std::size_t count, double* out, Stream* stream) = nullptr;
};

}  // namespace slimpi::kernels
