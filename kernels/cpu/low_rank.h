// SPDX-License-Identifier: BSD-3-Clause
// The two products of a low-rank sum:
//   dot() and the two multiply functions    a matrix times a thin factor (Kernels::multiply)
//   multiply_chunk() and keep_rest()        one thin factor times the other, which approximates the
//                                           matrix and leaves a residual (Kernels::low_rank)
// The terms of an element are added in an order that does not depend on the vector width, so all
// instruction sets produce the same bytes. Included by loops.cpp alone.
#pragma once
#include <cstring>

#include "kernels/cpu/tiles.h"
#include "kernels/kernels.h"
#include "kernels/math/bits.h"

namespace slimpi::kernels {
namespace {

typedef float FloatLanes
    __attribute__((vector_size(64)));  // several registers where the CPU's are shorter

constexpr std::size_t kChunk = 32;           // elements whose running sums stay in registers
constexpr std::size_t kPanel = 16 * kChunk;  // columns of q that stay in L1 or L2
constexpr std::size_t kBlockRows = 8;        // rows multiplied by each panel

// total[i] = sum over k of weights[k] * q[k * columns + i], for i < n <= kChunk. Any NaN becomes
// kNanBits.
void multiply_chunk(const float* weights, const float* q, std::size_t columns, int rank,
                    std::size_t n, float* total) {
  FloatLanes first = {}, second = {};
  if (n == kChunk) {
    for (int k = 0; k < rank; ++k, q += columns) {
      FloatLanes x, y;
      std::memcpy(&x, q, sizeof x);
      std::memcpy(&y, q + kChunk / 2, sizeof y);
      first += weights[k] * x;
      second += weights[k] * y;
    }
  } else {
    for (int k = 0; k < rank; ++k, q += columns) {
      float padded[kChunk] = {};
      std::memcpy(padded, q, n * sizeof(float));
      FloatLanes x, y;
      std::memcpy(&x, padded, sizeof x);
      std::memcpy(&y, padded + kChunk / 2, sizeof y);
      first += weights[k] * x;
      second += weights[k] * y;
    }
  }
  std::memcpy(total, &first, sizeof first);
  std::memcpy(total + kChunk / 2, &second, sizeof second);
  for (std::size_t i = 0; i < kChunk; ++i) total[i] = canonical(total[i]);
}

// residual = in + residual - share * total, or 0 where that overflows; out = total.
void keep_rest(const float* in, const float* total, float share, std::size_t n, float* residual,
               float* out) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const float rest = in[i] + residual[i] - share * total[i];
    residual[i] = (bits_of(rest) & 0x7fffffff) < kInfinityBits ? rest : 0.0f;
    out[i] = total[i];
  }
}

typedef float EightFloats __attribute__((vector_size(32)));

constexpr std::size_t kDots = 4;           // rows of b that one pass multiplies by a row of a
constexpr std::size_t kDotColumns = 1024;  // columns of these rows that stay in L1
constexpr std::size_t kRowsAtOnce = 4;     // rows that one pass adds to a row of c

// total[r] = the sum over i < n of a[i] * b[r][i]. Product i goes to partial sum i % 8. At the end
// the eight partial sums are added, then the products that do not fill a vector.
void dot(const float* a, const float* const (&b)[kDots], std::size_t n, float (&total)[kDots]) {
  EightFloats s0 = {}, s1 = {}, s2 = {}, s3 = {};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    EightFloats x, y0, y1, y2, y3;
    std::memcpy(&x, a + i, sizeof x);
    std::memcpy(&y0, b[0] + i, sizeof x);
    std::memcpy(&y1, b[1] + i, sizeof x);
    std::memcpy(&y2, b[2] + i, sizeof x);
    std::memcpy(&y3, b[3] + i, sizeof x);
    s0 += x * y0;
    s1 += x * y1;
    s2 += x * y2;
    s3 += x * y3;
  }
  const EightFloats* const all[kDots] = {&s0, &s1, &s2, &s3};
  for (std::size_t r = 0; r < kDots; ++r) {
    float s[8];
    std::memcpy(s, all[r], sizeof s);
    total[r] = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    for (std::size_t j = i; j < n; ++j) total[r] += a[j] * b[r][j];
  }
}

// c += a * b for a transposed b, whose column j is row j in memory.
void multiply_transposed(const Product& p) {
  const auto inner = std::size_t(p.inner), columns = std::size_t(p.columns);
  for (std::size_t at = 0; at < inner; at += kDotColumns)
    for (std::size_t j = 0; j < columns; j += kDots) {
      const std::size_t n = inner - at < kDotColumns ? inner - at : kDotColumns;
      const std::size_t left = columns - j < kDots ? columns - j : kDots;
      const float* b[kDots];
      for (std::size_t r = 0; r < kDots; ++r)
        b[r] = p.b + (j + (r < left ? r : 0)) * std::size_t(p.ldb) + at;
      for (std::size_t k = 0; k < std::size_t(p.rows); ++k) {
        float total[kDots];
        dot(p.a + k * std::size_t(p.lda) + at, b, n, total);
        for (std::size_t r = 0; r < left; ++r) p.c[k * std::size_t(p.ldc) + j + r] += total[r];
      }
    }
}

// c += a * b. An element's terms are added in the order of the rows of b.
void multiply_plain(const Product& p) {
  const auto inner = std::size_t(p.inner), columns = std::size_t(p.columns);
  const auto ldb = std::size_t(p.ldb);
  for (std::size_t at = 0; at < columns; at += kPanel)
    for (std::size_t i = 0; i < inner; i += kRowsAtOnce) {
      const std::size_t n = columns - at < kPanel ? columns - at : kPanel;
      const float* const b = p.b + i * ldb + at;
      for (std::size_t k = 0; k < std::size_t(p.rows); ++k) {
        const float* const w = p.a + k * std::size_t(p.lda) + i;
        float* SLIMPI_RESTRICT const c = p.c + k * std::size_t(p.ldc) + at;
        if (inner - i >= kRowsAtOnce)
          for (std::size_t j = 0; j < n; ++j)
            c[j] = (((c[j] + w[0] * b[j]) + w[1] * b[ldb + j]) + w[2] * b[2 * ldb + j]) +
                   w[3] * b[3 * ldb + j];
        else
          for (std::size_t r = 0; r < inner - i; ++r)
            for (std::size_t j = 0; j < n; ++j) c[j] += w[r] * b[r * ldb + j];
      }
    }
}

}  // namespace
}  // namespace slimpi::kernels
