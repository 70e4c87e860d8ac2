// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic that slimpi needs, as one table of functions per place where it can run: each CPU
// path and CUDA fill in one. All tables give the same bytes for the same input.
//
// Every function takes pointers that its table's memory owns, works in the order of `stream` (the
// host's tables ignore it and are done on return), does not allocate, and accepts count = 0.
// Pointers to floats may be aligned to 4 bytes only; encoded pieces are aligned to 4.
#pragma once
#include <cstddef>
#include <cstdint>

#include "format.h"

namespace slimpi::device {
struct Stream;
}

namespace slimpi::kernels {

using device::Stream;

// One encoded piece, or the exact floats (encoded = nullptr), that goes into a sum.
struct Addend {
  const std::byte* encoded = nullptr;
  const float* exact = nullptr;
};

constexpr int kMaxAddends =
    16;  // of one sum_encode or sum call; longer sums are chained by callers

// Two thin factors whose product stands for a matrix of rows x columns.
struct LowRank {
  const float* p = nullptr;
  const float* q = nullptr;
  int rank = 1;  // at most kMaxRank
  std::size_t rows = 0, columns = 0;
};
constexpr int kMaxRank = 64;

// What is beyond it is infinite or NaN.
constexpr float kMaxFloat = 0x1.fffffep127f;

// c (rows x columns) += a (rows x inner) * b, all row-major: b is inner x columns, or, transposed,
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

  // out = code(in + residual), and residual = in + residual - decode(out), unless residual is null.
  // A bucket with a non-finite element is marked, and its residual keeps the value that it had.
  // `out` has encoded_bytes(format, count) bytes; all of them are written. `in` may not overlap
  // `out`.
  void (*encode)(const Format& format, const RandomStream& random, const float* in, float* residual,
                 std::size_t count, std::byte* out, Stream* stream);

  // out = decode(in).
  void (*decode)(const Format& format, const std::byte* in, std::size_t count, float* out,
                 Stream* stream);

  // out += decode(in).
  void (*decode_add)(const Format& format, const std::byte* in, std::size_t count, float* out,
                     Stream* stream);

  // The owner's step: total = ((addend 0 + addend 1) + addend 2) + ..., in that order, in fp32
  // (near the greatest float as is_huge and saturated_sum of math/quantizer.h say);
  // out = code(total + residual), residual as in encode; result = decode(out). One pass over
  // memory. `result` may be the same memory as an exact addend. With `carry` not null the sum
  // starts from carry[] instead of addend 0 alone (carry + addend 0 + ...); `out` null: only result
  // = total, exact.
  void (*sum_encode)(const Format& format, const RandomStream& random, const Addend* addends,
                     int addend_count, const float* carry, float* residual, std::size_t count,
                     std::byte* out, float* result, Stream* stream);

  // out = ((in[0] + in[1]) + in[2]) + ...; out may be any of the inputs. At most kMaxAddends.
  void (*sum)(const float* const* in, int in_count, std::size_t count, float* out, Stream* stream);

  // out = a * x + b * y elementwise (each product rounded, then the sum); out may be x or y.
  void (*combine)(float a, const float* x, float b, const float* y, std::size_t count, float* out,
                  Stream* stream);

  // *found (memory of this table) is set to 1 if any element is NaN, below -limit or above limit,
  // else to 0.
  void (*find_beyond)(const float* in, float limit, std::size_t count, int* found, Stream* stream);

  // result[0] = sum of (a - b)^2, result[1] = sum of b^2, in double (memory of this table). Always
  // added up in the same order, which is the table's own: the last bits may differ between tables.
  void (*compare)(const float* a, const float* b, std::size_t count, double* result,
                  Stream* stream);

  // out = value, everywhere.
  void (*fill)(float* out, float value, std::size_t count, Stream* stream);

  // The end of a low-rank sum. p is `rank` rows of `rows` floats, q is `rank` rows of `columns`:
  // out[i] = sum over k, ascending from +0, of p[k][i / columns] * q[k][i % columns] for the first
  // `count` of the rows * columns elements. residual = (in + residual) - share * out, or 0 where
  // that overflows, unless residual is null; `in` may be `out`, and is not read without a residual.
  void (*low_rank)(const LowRank& factors, const float* in, float share, float* residual,
                   std::size_t count, float* out, Stream* stream);

  // A product of matrices, by a library that is loaded when this is first called; its rounding is
  // the machine's own. False, and nothing done, where there is none; a product without rows only
  // asks. Null in tables that have none anyhow.
  bool (*multiply)(const Product& product, Stream* stream) = nullptr;

  // out = a + b in the floating-point environment of the caller, traps included, with the NaNs of
  // the processor; out may be a or b. True: some element is NaN in both, and which NaN their sum is
  // may depend on the order of the two. Null in tables whose arithmetic is not the processor's.
  bool (*add)(const float* a, const float* b, std::size_t count, float* out) = nullptr;
};

}  // namespace slimpi::kernels
