// SPDX-License-Identifier: BSD-3-Clause
// The last step of a low-rank sum: the product of two thin factors, and the residual that it leaves
// of the input matrix. Each element's terms are added in the order of the factors' columns, so the
// result does not depend on the vector width. Included by loops.cpp alone.
#pragma once
#include <cstring>

#include "kernels/kernels.h"
#include "kernels/math/bits.h"

namespace slimpi::kernels {
namespace {

typedef float FloatLanes
    __attribute__((vector_size(64)));  // compiled to several registers where they are shorter

constexpr std::size_t kChunk = 32;           // elements whose sums stay in registers
constexpr std::size_t kPanel = 16 * kChunk;  // columns of q that stay in L1 or L2
constexpr std::size_t kBlockRows = 8;        // rows that use a panel before the next one is loaded

// total[0 .. n - 1] = sum over k of weights[k] * q[k * columns ...]; a NaN is kNanBits.
// n <= kChunk.
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

// residual = in + residual - share * total, then out = total. A residual that overflows becomes 0.
void keep_rest(const float* in, const float* total, float share, std::size_t n, float* residual,
               float* out) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const float rest = in[i] + residual[i] - share * total[i];
    residual[i] = (bits_of(rest) & 0x7fffffff) < kInfinityBits ? rest : 0.0f;
    out[i] = total[i];
  }
}

}  // namespace
}  // namespace slimpi::kernels
