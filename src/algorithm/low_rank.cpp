// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/low_rank.h"

#include <cmath>

#include "kernels/cpu/environment.h"
#include "kernels/math/philox.h"

namespace slimpi::algorithm {

namespace {

// The number of partial sums. The compiler can vectorize them without changing the order.
constexpr int kLanes = 8;

// If the norm of a vector, after the projections on the other vectors are subtracted, is below this
// fraction of its norm before, the rest is rounding noise. The input is floats, so a rest that is
// not noise is far larger.
constexpr double kNothingLeft = 1e-12;

template <typename Other>
double dot(const double* a, const Other* b, std::uint64_t length) {
  double sums[kLanes] = {};
  const std::uint64_t whole = length / kLanes * kLanes;
  for (std::uint64_t i = 0; i < whole; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane)
      sums[lane] += a[i + std::uint64_t(lane)] * double(b[i + std::uint64_t(lane)]);
  for (std::uint64_t i = whole; i < length; ++i) sums[i - whole] += a[i] * double(b[i]);
  double total = sums[0];
  for (int lane = 1; lane < kLanes; ++lane) total += sums[lane];
  return total;
}

[[gnu::noinline]] bool orthonormalize_in_double(float* factor, std::uint64_t length, int k,
                                                double* work) {
  float* const vector = factor + std::uint64_t(k) * length;
  for (std::uint64_t i = 0; i < length; ++i) work[i] = vector[i];
  const double before = std::sqrt(dot(work, work, length));
  for (int pass = 0; pass < 2; ++pass)
    for (int other = 0; other < k; ++other) {
      const float* const unit = factor + std::uint64_t(other) * length;
      const double part = dot(work, unit, length);
      for (std::uint64_t i = 0; i < length; ++i) work[i] -= part * double(unit[i]);
    }
  const double norm = std::sqrt(dot(work, work, length));
  const bool something = norm > before * kNothingLeft;
  for (std::uint64_t i = 0; i < length; ++i) vector[i] = something ? float(work[i] / norm) : 0.0f;
  return something;
}

[[gnu::noinline]] void draw_in_floats(const kernels::RandomStream& draw, std::uint64_t length,
                                      float* vector) {
  constexpr int kMean = 8 * 65535 / 2;
  constexpr float kDeviation = 0x1p16f * 0.81649658f;  // of the sum of 8: sqrt(8 / 12) of the range
  for (std::uint64_t i = 0; i < length; ++i) {
    const kernels::Block block = kernels::random_block(draw, draw.first + i);
    int sum = 0;
    for (const std::uint32_t word : block.word) sum += int(word & 0xffff) + int(word >> 16);
    vector[i] = float(sum - kMean) / kDeviation;
  }
}

}  // namespace

bool orthonormalize_vector(float* factor, std::uint64_t length, int k, double* scratch) {
  const kernels::DefaultEnvironment environment;
  return orthonormalize_in_double(factor, length, k, scratch);
}

void orthonormalize(float* factor, std::uint64_t length, int rank, double* scratch) {
  for (int k = 0; k < rank; ++k) orthonormalize_vector(factor, length, k, scratch);
}

void draw_normal(const kernels::RandomStream& draw, std::uint64_t length, float* vector) {
  const kernels::DefaultEnvironment environment;
  draw_in_floats(draw, length, vector);
}

}  // namespace slimpi::algorithm
