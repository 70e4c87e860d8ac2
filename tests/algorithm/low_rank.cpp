// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of a low-rank sum that must give the same bytes on every machine.
#include "algorithm/powersgd.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "kernels/cpu/cpu.h"
#include "tests/helper/base/unit_test.h"

using namespace slimpi;
using algorithm::draw_normal;
using algorithm::orthonormalize;

namespace {

constexpr std::uint64_t kLength = 203;
constexpr int kRank = 5;

float g_factor[kRank * kLength];
double g_scratch[kLength];

double dot(const float* a, const float* b) {
  double sum = 0;
  for (std::uint64_t i = 0; i < kLength; ++i) sum += double(a[i]) * b[i];
  return sum;
}

std::uint32_t checksum(const float* from, std::size_t count) {
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, from + i, sizeof bits);
    for (int byte = 0; byte < 4; ++byte) hash = (hash ^ (bits >> 8 * byte & 0xff)) * 16777619u;
  }
  return hash;
}

void draw_all(float scale) {
  draw_normal({7, 1, 2, 3}, kRank * kLength, g_factor);
  for (float& x : g_factor) x *= scale;
}

void expect_orthonormal(int vectors) {
  for (int a = 0; a < vectors; ++a)
    for (int b = 0; b <= a; ++b) {
      const double product = dot(g_factor + a * kLength, g_factor + b * kLength);
      assert_true(std::fabs(product - (a == b ? 1 : 0)) < 1e-6);
    }
}

UNIT_TEST(vectors_become_orthonormal_at_any_scale) {
  for (const float scale : {1.0f, 1e-30f, 1e30f}) {
    draw_all(scale);
    orthonormalize(g_factor, kLength, kRank, g_scratch);
    expect_orthonormal(kRank);
  }
}

// The second vector is almost the first: its remainder is small, and still exactly orthogonal.
UNIT_TEST(nearly_dependent_vectors_become_orthonormal) {
  draw_all(1);
  for (std::uint64_t i = 0; i < kLength; ++i)
    g_factor[3 * kLength + i] = g_factor[i] + 1e-5f * g_factor[3 * kLength + i];
  orthonormalize(g_factor, kLength, kRank, g_scratch);
  expect_orthonormal(kRank);
}

UNIT_TEST(vectors_without_anything_of_their_own_become_zero) {
  std::memset(g_factor, 0, sizeof g_factor);
  g_factor[3] = -2;               // vector 0
  g_factor[2 * kLength + 3] = 5;  // vector 2: the same direction
  g_factor[3 * kLength + 4] = 1;  // vector 3
  g_factor[4 * kLength + 3] = -0.0f;
  for (int k = 0; k < kRank; ++k)
    assert_int_equal(algorithm::orthonormalize_vector(g_factor, kLength, k, g_scratch),
                     k == 0 || k == 3);
  float expected[kRank * kLength] = {};
  expected[3] = -1;
  expected[3 * kLength + 4] = 1;
  assert_memory_equal(g_factor, expected, sizeof expected);
}

UNIT_TEST(drawn_numbers_look_normal) {
  constexpr std::size_t kMany = 1 << 16;
  static float many[kMany];
  draw_normal({1, 2, 3, 0}, kMany, many);
  double mean = 0, square = 0, beyond = 0;
  for (const float x : many) {
    mean += x / kMany;
    square += double(x) * x / kMany;
    beyond += std::fabs(x) > 1.959964 ? 1.0 / kMany : 0;
  }
  assert_true(std::fabs(mean) < 0.02);
  assert_true(std::fabs(square - 1) < 0.02);
  assert_true(std::fabs(beyond - 0.05) < 0.005);
}

UNIT_TEST(a_range_of_a_stream_is_the_same_wherever_it_starts) {
  float whole[100], part[40];
  draw_normal({1, 2, 3, 0}, 100, whole);
  draw_normal({1, 2, 3, 60}, 40, part);
  assert_memory_equal(whole + 60, part, sizeof part);
  draw_normal({1, 2, 4, 60}, 40, part);
  assert_memory_not_equal(whole + 60, part, sizeof part);
}

// The checksums were written down once; every compiler and CPU must give them.
UNIT_TEST(the_bytes_are_the_same_everywhere) {
  draw_all(1);
  assert_int_equal(checksum(g_factor, kRank * kLength), 0xed89692d);
  orthonormalize(g_factor, kLength, kRank, g_scratch);
  assert_int_equal(checksum(g_factor, kRank * kLength), 0x3823daa8);
}

#if defined(__SSE__)
UNIT_TEST(the_programs_rounding_does_not_matter) {
  static float plain[kRank * kLength];
  draw_all(1e-39f);
  orthonormalize(g_factor, kLength, kRank, g_scratch);
  std::memcpy(plain, g_factor, sizeof plain);
  const unsigned saved = _mm_getcsr();
  draw_all(1e-39f);
  _mm_setcsr(saved | 0x8040 | _MM_ROUND_UP);  // subnormal numbers as zero
  orthonormalize(g_factor, kLength, kRank, g_scratch);
  _mm_setcsr(saved);
  assert_memory_equal(plain, g_factor, sizeof plain);
}
#endif

struct Shape {
  std::size_t rows, columns, count;
  int rank;
};

constexpr Shape kShapes[] = {{1, 1, 1, 1},      {3, 5, 15, 2},     {7, 7, 43, 3},
                             {40, 31, 1240, 4}, {9, 600, 5400, 2}, {20, 33, 641, 20},
                             {64, 70, 4480, 64}};
constexpr std::size_t kMost = 5400;
float g_p[64 * 64], g_q[64 * 600], g_in[kMost], g_out[kMost], g_residual[kMost];

void fill(const Shape& shape) {
  draw_normal({1, 0, 0, 0}, shape.rank * shape.rows, g_p);
  draw_normal({2, 0, 0, 0}, shape.rank * shape.columns, g_q);
  draw_normal({3, 0, 0, 0}, shape.count, g_in);
  draw_normal({4, 0, 0, 0}, shape.count, g_residual);
}

// Compares each path, to the byte, with the plain loop that the contract describes.
UNIT_TEST(products_of_factors_are_the_plain_loop) {
  static float out[kMost], residual[kMost];
  for (const CpuPath path : {CpuPath::generic, CpuPath::avx2, CpuPath::avx512})
    for (const Shape& s : kShapes)
      for (const bool in_place : {false, true}) {
        const kernels::Kernels* const table = kernels::cpu_kernels(path);
        if (table == nullptr) continue;
        fill(s);
        for (std::size_t i = 0; i < s.count; ++i) {
          volatile float sum = 0;  // every operation is rounded
          for (int k = 0; k < s.rank; ++k) {
            volatile float product = g_p[std::size_t(k) * s.rows + i / s.columns] *
                                     g_q[std::size_t(k) * s.columns + i % s.columns];
            sum = sum + product;
          }
          out[i] = sum;
          volatile float whole = g_in[i] + g_residual[i], share = 0.3f * sum;
          residual[i] = whole - share;
        }
        if (in_place) std::memcpy(g_out, g_in, s.count * sizeof(float));
        table->low_rank({g_p, g_q, s.rank, s.rows, s.columns}, in_place ? g_out : g_in, 0.3f,
                        g_residual, s.count, g_out, nullptr);
        assert_memory_equal(out, g_out, s.count * sizeof(float));
        assert_memory_equal(residual, g_residual, s.count * sizeof(float));
        std::memset(g_out, 0xff, sizeof g_out);
        table->low_rank({g_p, g_q, s.rank, s.rows, s.columns}, nullptr, 0.3f, nullptr, s.count,
                        g_out, nullptr);
        assert_memory_equal(out, g_out, s.count * sizeof(float));
        if (s.count < kMost) assert_true(std::isnan(g_out[s.count]));
      }
}

UNIT_TEST(a_rest_that_overflows_is_not_kept_and_zero_is_positive) {
  const kernels::Kernels* const table = kernels::cpu_kernels(CpuPath::automatic);
  float p[] = {-1, -0.0f}, q[] = {1e38f, 0}, in[] = {3e38f, 1, 2, -0.0f};
  float residual[] = {0, 1, 1, 0}, out[4];
  table->low_rank({p, q, 1, 2, 2}, in, 1, residual, 4, out, nullptr);
  const float expected_out[] = {-1e38f, 0, 0, 0}, expected_rest[] = {0, 2, 3, 0};
  assert_memory_equal(out, expected_out, sizeof out);
  assert_memory_equal(residual, expected_rest, sizeof out);
}

// Compares every path with the other paths, to the byte, and with sums in double. The rows of all
// three matrices lie apart; the bytes between rows are not touched.
UNIT_TEST(products_of_matrices_are_the_same_everywhere) {
  struct {
    int rows, columns, inner;
  } constexpr kProducts[] = {{1, 1, 1},    {1, 4, 8},     {2, 5, 7},      {3, 9, 1030},
                             {4, 1030, 9}, {64, 33, 130}, {5, 600, 2051}, {1, 2051, 3}};
  constexpr int kApart = 3;
  for (const auto& [rows, columns, inner] : kProducts)
    for (const int transposed : {0, 1}) {
      const int lda = inner + kApart, ldb = (transposed != 0 ? inner : columns) + kApart,
                ldc = columns + kApart;
      std::vector<float> a(std::size_t(rows * lda)), c(std::size_t(rows * ldc)), first;
      std::vector<float> b(std::size_t((transposed != 0 ? columns : inner) * ldb));
      draw_normal({1, 0, 0, 0}, a.size(), a.data());
      draw_normal({2, 0, 0, 0}, b.size(), b.data());
      draw_normal({3, 0, 0, 0}, c.size(), c.data());
      const std::vector<float> before = c;
      for (const CpuPath path : {CpuPath::generic, CpuPath::avx2, CpuPath::avx512}) {
        const kernels::Kernels* const table = kernels::cpu_kernels(path);
        if (table == nullptr) continue;
        c = before;
        assert_true(table->multiply(
            {transposed, rows, columns, inner, a.data(), lda, b.data(), ldb, c.data(), ldc},
            nullptr));
        if (first.empty()) first = c;
        assert_memory_equal(c.data(), first.data(), c.size() * sizeof(float));
      }
      for (int row = 0; row < rows; ++row)
        for (int column = 0; column < ldc; ++column) {
          const auto at = std::size_t(row * ldc + column);
          double sum = before[at], most = std::fabs(sum);
          for (int i = 0; i < inner && column < columns; ++i) {
            const double term =
                double(a[std::size_t(row * lda + i)]) *
                b[std::size_t(transposed != 0 ? column * ldb + i : i * ldb + column)];
            sum += term;
            most += std::fabs(term);
          }
          assert_true(std::fabs(first[at] - sum) <= (column < columns ? 1e-6 * most * inner : 0));
        }
    }
}

// Products may overflow though the factors are finite. Processors differ in the NaN that inf - inf
// gives, and so do GPUs.
UNIT_TEST(the_difference_of_infinities_is_the_one_nan) {
  for (const CpuPath path : {CpuPath::generic, CpuPath::avx2, CpuPath::avx512}) {
    const kernels::Kernels* const table = kernels::cpu_kernels(path);
    if (table == nullptr) continue;
    const float p[] = {3e38f, 3e38f};
    float q[2 * 40], in[40] = {}, residual[40] = {}, out[40];
    for (int i = 0; i < 40; ++i) q[i] = -(q[40 + i] = 3e38f);
    for (float* const rest : {(float*)nullptr, residual}) {
      table->low_rank({p, q, 2, 1, 40}, in, 1, rest, 40, out, nullptr);
      for (const float& value : out) {
        std::uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        assert_int_equal(bits, 0x7fc00000);
      }
    }
    for (const float value : residual) assert_true(value == 0);
  }
}

}  // namespace
