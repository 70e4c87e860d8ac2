// SPDX-License-Identifier: BSD-3-Clause
// The elementwise kernels: the value codecs, sums of floats, and the functions of Kernels that need
// no codec.
#include <type_traits>

#include "kernels/cuda/kernel.h"
#include "kernels/math/feedback.h"

namespace slimpi::kernels::cuda {

// Calls visit(i, j) for each element of this thread, where i is its index in the vector and j its
// index in the thread. The elements of a block are contiguous.
template <typename Visit>
SLIMPI_DEVICE void for_each_element(std::uint64_t count, const Visit& visit) {
  const std::uint64_t first = (std::uint64_t)blockIdx.x * kElementsOfBlock + threadIdx.x;
  SLIMPI_UNROLL
  for (int j = 0; j < kElementsOfThread; ++j) {
    const std::uint64_t i = first + (std::uint64_t)(j * kThreads);
    if (i < count) visit(i, j);
  }
}

// Calls use(TYPE()) for the TYPE of a value codec (kernels/codecs.h).
template <typename Use>
SLIMPI_DEVICE void with_type(Codec codec, const Use& use) {
#define SLIMPI_ROW(name, number, Type, bits, greatest, infinity) \
  if (codec == Codec::name) return use(Type());
  SLIMPI_VALUE_CODECS(SLIMPI_ROW)
#undef SLIMPI_ROW
}

// The elements of a thread, which loads all of them before it stores the first. The compiler could
// not reorder the loads itself, because inputs and outputs may be the same memory.
using Elements = float[kElementsOfThread];

template <typename Type>
SLIMPI_DEVICE void load_plain(Type, std::uint64_t count, const typename Type::Value* in,
                              Elements& values) {
  typename Type::Value encoded[kElementsOfThread] = {};
  for_each_element(count, [&](std::uint64_t i, int j) { encoded[j] = in[i]; });
  SLIMPI_UNROLL
  for (int j = 0; j < kElementsOfThread; ++j) values[j] = decode_value(Type(), encoded[j]);
}

template <typename Type>
SLIMPI_DEVICE void plain_sum(Type type, const PlainSumArguments& a) {
  Elements totals = {};
  SLIMPI_ROLLED
  for (int s = 0; s < a.addend_count; ++s) {
    const Addend& addend = a.addends[s];
    Elements ones;
    if (addend.encoded == nullptr)
      load_plain(Float32(), a.count, addend.exact, ones);
    else
      load_plain(type, a.count, (const typename Type::Value*)addend.encoded, ones);
    SLIMPI_UNROLL
    for (int j = 0; j < kElementsOfThread; ++j)
      totals[j] = s == 0 ? ones[j] : add(totals[j], ones[j]);
  }
  if (a.out != nullptr) {
    Elements values;
    if (a.residual != nullptr) {
      load_plain(Float32(), a.count, a.residual, values);
      SLIMPI_UNROLL
      for (int j = 0; j < kElementsOfThread; ++j)
        // float32 loses nothing, so its residual limit is 0, and only canonical() is needed.
        // clamp_residual() should return -0 for this limit, which changes no sum, but nvcc compiles
        // it to min and max, which return +0, and adding +0 would turn -0 into +0.
        totals[j] = std::is_same_v<Type, Float32>
                        ? canonical(totals[j])
                        : add(totals[j], clamp_residual(values[j], spacing(type, totals[j])));
    }
    for_each_element(a.count, [&](std::uint64_t i, int j) {
      const typename Type::Value encoded = encode_value(type, totals[j]);
      ((typename Type::Value*)a.out)[i] = encoded;
      values[j] = decode_value(type, encoded);
      if (a.residual != nullptr && is_finite(values[j])) a.residual[i] = totals[j] - values[j];
      totals[j] = values[j];
    });
  }
  if (a.result != nullptr)
    for_each_element(a.count, [&](std::uint64_t i, int j) { a.result[i] = totals[j]; });
}
SLIMPI_DEVICE void plain_sum(const PlainSumArguments& a) {
  with_type(a.codec, [&](auto type) { plain_sum(type, a); });
}

SLIMPI_DEVICE void plain_decode(const PlainDecodeArguments& a) {
  with_type(a.codec, [&](auto type) {
    using Value = typename decltype(type)::Value;
    Elements values, before;
    load_plain(type, a.count, (const Value*)a.in, values);
    if (a.add) {
      load_plain(Float32(), a.count, a.out, before);
      SLIMPI_UNROLL
      for (int j = 0; j < kElementsOfThread; ++j) values[j] = add(before[j], values[j]);
    }
    for_each_element(a.count, [&](std::uint64_t i, int j) { a.out[i] = values[j]; });
  });
}

// Adds in the order of Kernels::pair_sum. `level` stays in registers, because the compiler knows
// all indices. Its elements beyond the last addend are 0 and do not reach the result.
SLIMPI_DEVICE void pair_sum(const PairSumArguments& a) {
  const int power = a.addend_count - a.surplus;
  for_each_element(a.count, [&](std::uint64_t i, int) {
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
  for_each_element(a.count, [&](std::uint64_t i, int) {
    a.out[i] = add(a.a * a.x[i], a.b == 0 ? -0.0f : a.b * a.y[i]);
  });
}

SLIMPI_DEVICE void fill(const FillArguments& a) {
  for_each_element(a.count, [&](std::uint64_t i, int) { a.out[i] = a.value; });
}

SLIMPI_DEVICE void find_beyond(const FindArguments& a) {
  bool found = false;
  for_each_element(a.count, [&](std::uint64_t i, int) {
    found |= !(a.in[i] >= -a.limit && a.in[i] <= a.limit);
  });
  if (found) *a.found = 1;
}

// Sets shared[0] to the sums of `error` and `norm` over all threads of the block, added in a fixed
// order.
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

// Implements Kernels::low_rank. Each block processes kThreads columns of kLowRankRows rows.
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
