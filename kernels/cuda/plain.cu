// SPDX-License-Identifier: BSD-3-Clause
// Elementwise kernels: value codecs, exact sums, and the other functions of the kernel table.
#include "kernels/cuda/kernel.h"
#include "kernels/math/feedback.h"

namespace slimpi::kernels::cuda {

// Calls `visit` with each element of this thread; the elements of a block are contiguous.
template <typename Visit>
SLIMPI_DEVICE void for_each_element(std::uint64_t count, const Visit& visit) {
  const std::uint64_t first = (std::uint64_t)blockIdx.x * kElementsOfBlock + threadIdx.x;
  SLIMPI_UNROLL
  for (int j = 0; j < kElementsOfThread; ++j) {
    const std::uint64_t i = first + (std::uint64_t)(j * kThreads);
    if (i < count) visit(i);
  }
}

SLIMPI_DEVICE float read_plain(Codec codec, const std::byte* in, std::uint64_t i) {
#define SLIMPI_ROW(name, number, Type, bits, greatest, infinity) \
  if (codec == Codec::name) return decode_value(Type(), ((const Type::Value*)in)[i]);
  SLIMPI_VALUE_CODECS(SLIMPI_ROW)
#undef SLIMPI_ROW
  return 0;
}

SLIMPI_DEVICE float spacing(Codec codec, float value) {
#define SLIMPI_ROW(name, number, Type, bits, greatest, infinity) \
  if (codec == Codec::name) return spacing(Type(), value);
  SLIMPI_VALUE_CODECS(SLIMPI_ROW)
#undef SLIMPI_ROW
  return 0;
}

// Writes the encoded value and returns its decoded value.
SLIMPI_DEVICE float write_plain(Codec codec, float value, std::byte* out, std::uint64_t i) {
#define SLIMPI_ROW(name, number, Type, bits, greatest, infinity) \
  if (codec == Codec::name)                                      \
    return decode_value(Type(), ((Type::Value*)out)[i] = encode_value(Type(), value));
  SLIMPI_VALUE_CODECS(SLIMPI_ROW)
#undef SLIMPI_ROW
  return 0;
}

SLIMPI_DEVICE void plain_sum(const PlainSumArguments& a) {
  for_each_element(a.count, [&](std::uint64_t i) {
    float total = 0;
    for (int s = 0; s < a.addend_count; ++s) {
      const Addend& addend = a.addends[s];
      const float one =
          addend.encoded == nullptr ? addend.exact[i] : read_plain(a.codec, addend.encoded, i);
      total = s == 0 ? one : add(total, one);
    }
    if (a.out != nullptr) {
      if (a.residual != nullptr)
        total = add(total, clamp_residual(a.residual[i], spacing(a.codec, total)));
      const float decoded = write_plain(a.codec, total, a.out, i);
      if (a.residual != nullptr && is_finite(decoded)) a.residual[i] = total - decoded;
      total = decoded;
    }
    if (a.result != nullptr) a.result[i] = total;
  });
}

SLIMPI_DEVICE void plain_decode(const PlainDecodeArguments& a) {
  for_each_element(a.count, [&](std::uint64_t i) {
    const float value = read_plain(a.codec, a.in, i);
    a.out[i] = a.add ? add(a.out[i], value) : value;
  });
}

// The array stays in registers: all its indices are known to the compiler. Those behind the last
// addend are 0 and reach no result.
SLIMPI_DEVICE void pair_sum(const PairSumArguments& a) {
  const int power = a.addend_count - a.surplus;
  for_each_element(a.count, [&](std::uint64_t i) {
    float level[kMaxAddends];
    SLIMPI_UNROLL
    for (int j = 0; j < kMaxAddends; ++j) {
      level[j] = 0;
      if (2 * j + 1 < kMaxAddends && j < a.surplus)
        level[j] = add(a.addends[2 * j % kMaxAddends][i], a.addends[(2 * j + 1) % kMaxAddends][i]);
      else if (j < power)
        level[j] = a.addends[j + a.surplus][i];
    }
    for (int width = power; width > 1; width /= 2) {
      SLIMPI_UNROLL
      for (int j = 0; j < kMaxAddends / 2; ++j) level[j] = add(level[2 * j], level[2 * j + 1]);
    }
    a.out[i] = level[0];
  });
}

SLIMPI_DEVICE void combine(const CombineArguments& a) {
  for_each_element(a.count, [&](std::uint64_t i) {
    a.out[i] = add(a.a * a.x[i], a.b == 0 ? -0.0f : a.b * a.y[i]);
  });
}

SLIMPI_DEVICE void fill(const FillArguments& a) {
  for_each_element(a.count, [&](std::uint64_t i) { a.out[i] = a.value; });
}

SLIMPI_DEVICE void find_beyond(const FindArguments& a) {
  bool found = false;
  for_each_element(a.count,
                   [&](std::uint64_t i) { found |= !(a.in[i] >= -a.limit && a.in[i] <= a.limit); });
  if (found) *a.found = 1;
}

// shared[0] = the sums of all threads, added in a fixed order.
SLIMPI_DEVICE void add_up(double error, double norm, double (&shared)[kThreads][2]) {
  const int thread = (int)threadIdx.x;
  shared[thread][0] = error;
  shared[thread][1] = norm;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread >= half) continue;
    shared[thread][0] += shared[thread + half][0];
    shared[thread][1] += shared[thread + half][1];
  }
}

SLIMPI_DEVICE void compare(const CompareArguments& a) {
  __shared__ double shared[kThreads][2];
  double error = 0, norm = 0;
  constexpr std::uint64_t kStep = (std::uint64_t)kCompareBlocks * kThreads;
  for (std::uint64_t i = (std::uint64_t)blockIdx.x * kThreads + threadIdx.x; i < a.count;
       i += kStep) {
    const double x = (double)a.a[i], y = (double)a.b[i];
    error += (x - y) * (x - y);
    norm += y * y;
  }
  add_up(error, norm, shared);
  if (threadIdx.x != 0) return;
  a.partial[2 * blockIdx.x] = shared[0][0];
  a.partial[2 * blockIdx.x + 1] = shared[0][1];
}

SLIMPI_DEVICE void compare_end(const CompareArguments& a) {
  __shared__ double shared[kThreads][2];
  add_up(a.partial[2 * threadIdx.x], a.partial[2 * threadIdx.x + 1], shared);
  if (threadIdx.x != 0) return;
  a.result[0] = shared[0][0];
  a.result[1] = shared[0][1];
}

// A block processes kThreads columns of kLowRankRows rows.
SLIMPI_DEVICE void low_rank(const LowRankArguments& a) {
  const LowRank& f = a.factors;
  const std::uint64_t column =
      (std::uint64_t)(blockIdx.x % a.column_tiles) * kThreads + threadIdx.x;
  const std::uint64_t row = (std::uint64_t)(blockIdx.x / a.column_tiles) * kLowRankRows;
  if (column >= f.columns) return;
  float total[kLowRankRows] = {};
  for (int k = 0; k < f.rank; ++k) {
    const float* const p = f.p + (std::uint64_t)k * f.rows;
    const float q = f.q[(std::uint64_t)k * f.columns + column];
    SLIMPI_UNROLL
    for (int r = 0; r < kLowRankRows; ++r)
      if (row + (std::uint64_t)r < f.rows) total[r] += p[row + (std::uint64_t)r] * q;
  }
  SLIMPI_UNROLL
  for (int r = 0; r < kLowRankRows; ++r) {
    const std::uint64_t i = (row + (std::uint64_t)r) * f.columns + column;
    if (row + (std::uint64_t)r >= f.rows || i >= a.count) continue;
    if (a.residual != nullptr) {
      const float rest = a.in[i] + a.residual[i] - a.share * total[r];
      a.residual[i] = is_finite(rest) ? rest : 0.0f;
    }
    a.out[i] = canonical(total[r]);
  }
}

SLIMPI_KERNEL(plain_sum, PlainSumArguments, 8, plain_sum)
SLIMPI_KERNEL(plain_decode, PlainDecodeArguments, 8, plain_decode)
SLIMPI_KERNEL(pair_sum, PairSumArguments, 4, pair_sum)
SLIMPI_KERNEL(combine, CombineArguments, 8, combine)
SLIMPI_KERNEL(fill, FillArguments, 8, fill)
SLIMPI_KERNEL(find_beyond, FindArguments, 8, find_beyond)
SLIMPI_KERNEL(compare, CompareArguments, 8, compare)
SLIMPI_KERNEL(compare_end, CompareArguments, 4, compare_end)
SLIMPI_KERNEL(low_rank, LowRankArguments, 8, low_rank)

}  // namespace slimpi::kernels::cuda
