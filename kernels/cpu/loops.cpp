// SPDX-License-Identifier: BSD-3-Clause
// The host's kernels, compiled once per instruction set: SLIMPI_CPU names the copy and its table.
// Nothing but the table has external linkage, or the linker would take one copy of an inline
// function for all of them and an old machine would run instructions that it does not have.
#include "kernels/cpu/environment.h"
#include "kernels/cpu/pieces.h"

namespace slimpi::kernels::SLIMPI_CPU {
extern const Kernels table;

namespace {

[[gnu::noinline]] void encode(const Format& format, const Draw& draw, const float* in,
                              float* residual, std::size_t count, std::byte* out) {
  const std::size_t stretch = stretch_elements(format, count);
  Draw from = draw;
  for (std::size_t i = 0; i < count; i += stretch) {
    const std::size_t n = count - i < stretch ? count - i : stretch;
    const Values values = {in + i, residual == nullptr ? nullptr : residual + i, nullptr};
    if (format.coding == Coding::quantized) {
      from.first = draw.first + i;
      encode_bucket(format, from, extremes_of(values, n), values, n, out);
    } else {
      encode_plain_tile(format.coding, values, n, out);
    }
    out += encoded_bytes(format, n);
  }
}

[[gnu::noinline]] void decode(const Format& format, const std::byte* in, std::size_t count,
                              float* out) {
  const std::size_t stretch = stretch_elements(format, count);
  for (std::size_t i = 0; i < count; i += stretch) {
    const std::size_t n = count - i < stretch ? count - i : stretch;
    const Source source = open_source(format, in, n);
    for (std::size_t j = 0; j < n; j += kTile)
      read_source(source, j, n - j < kTile ? n - j : kTile, out + i + j);
    in += encoded_bytes(format, n);
  }
}

[[gnu::noinline]] void decode_add(const Format& format, const std::byte* in, std::size_t count,
                                  float* out) {
  const std::size_t stretch = stretch_elements(format, count);
  for (std::size_t i = 0; i < count; i += stretch) {
    const std::size_t n = count - i < stretch ? count - i : stretch;
    const Source source = open_source(format, in, n);
    for (std::size_t j = 0; j < n; j += kTile)
      accumulate_source(source, j, n - j < kTile ? n - j : kTile, out + i + j);
    in += encoded_bytes(format, n);
  }
}

// total = sum of the sources in a stretch of n elements; the extremes of total + residual.
Extremes sum_stretch(const Source* sources, int source_count, const float* residual, std::size_t n,
                     bool want_extremes, float* total) {
  Extremes extremes = no_extremes();
  float sum[kTile], with_residual[kTile];
  for (std::size_t j = 0; j < n; j += kTile) {
    const std::size_t tile = n - j < kTile ? n - j : kTile;
    read_source(sources[0], j, tile, sum);
    for (int s = 1; s < source_count; ++s) accumulate_source(sources[s], j, tile, sum);
    std::memcpy(total + j, sum, tile * sizeof(float));
    if (!want_extremes) continue;
    if (residual != nullptr) add_tiles(sum, residual + j, tile, with_residual);
    include_tile(extremes, residual != nullptr ? with_residual : sum, tile);
  }
  return extremes;
}

[[gnu::noinline]] void sum_encode(const Format& format, const Draw& draw, const Addend* addends,
                                  int addend_count, const float* carry, float* residual,
                                  std::size_t count, std::byte* out, float* result) {
  const std::size_t stretch = stretch_elements(format, count);
  const bool quantized = format.coding == Coding::quantized;
  Draw from = draw;
  std::size_t coded = 0;  // bytes of the encoded pieces before this stretch
  for (std::size_t i = 0; i < count; i += stretch) {
    const std::size_t n = count - i < stretch ? count - i : stretch;
    Source sources[kMaxAddends + 1];
    int source_count = 0;
    if (carry != nullptr) sources[source_count++] = exact_source(carry + i);
    for (int a = 0; a < addend_count; ++a)
      sources[source_count++] = addends[a].encoded == nullptr
                                    ? exact_source(addends[a].exact + i)
                                    : open_source(format, addends[a].encoded + coded, n);
    const Values values = {result + i, residual == nullptr ? nullptr : residual + i, result + i};
    const Extremes extremes = sum_stretch(sources, source_count, values.residual, n,
                                          quantized && out != nullptr, result + i);
    if (out != nullptr && quantized) {
      from.first = draw.first + i;
      encode_bucket(format, from, extremes, values, n, out + coded);
    } else if (out != nullptr) {
      encode_plain_tile(format.coding, values, n, out + coded);
    }
    coded += encoded_bytes(format, n);
  }
}

[[gnu::noinline]] void sum(const float* const* in, int in_count, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; i += kTile) {
    const std::size_t n = count - i < kTile ? count - i : kTile;
    float total[kTile];
    std::memcpy(total, in[0] + i, n * sizeof(float));
    for (int s = 1; s < in_count; ++s) accumulate(in[s] + i, n, total);
    std::memcpy(out + i, total, n * sizeof(float));
  }
}

[[gnu::noinline]] void combine(float a, const float* x, float b, const float* y, std::size_t count,
                               float* out) {
  for (std::size_t i = 0; i < count; i += kTile) {
    const std::size_t n = count - i < kTile ? count - i : kTile;
    float total[kTile];
    const float *from_x = x + i, *from_y = y + i;
    for (std::size_t j = 0; j < n; ++j) total[j] = add(a * from_x[j], b * from_y[j]);
    std::memcpy(out + i, total, n * sizeof(float));
  }
}

[[gnu::noinline]] void find_nonfinite(const float* in, std::size_t count, int* found) {
  *found = 0;
  for (std::size_t i = 0; i < count && *found == 0; i += kTile) {
    const std::size_t n = count - i < kTile ? count - i : kTile;
    std::uint32_t greatest = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const std::uint32_t magnitude = bits_of(in[i + j]) & 0x7fffffff;
      greatest = greatest > magnitude ? greatest : magnitude;
    }
    *found = greatest >= kInfinityBits;
  }
}

// Sixteen sums side by side, so that every path adds in the same order.
[[gnu::noinline]] void compare(const float* a, const float* b, std::size_t count, double* result) {
  constexpr int kLanes = 16;
  double error[kLanes] = {}, norm[kLanes] = {};
  const std::size_t whole = count / kLanes * kLanes;
  for (std::size_t i = 0; i < count; i += kLanes) {
    const int lanes = i == whole ? (int)(count - whole) : kLanes;
    for (int lane = 0; lane < lanes; ++lane) {
      const double x = a[i + lane], y = b[i + lane];
      error[lane] += (x - y) * (x - y);
      norm[lane] += y * y;
    }
  }
  for (int lane = 1; lane < kLanes; ++lane) {
    error[0] += error[lane];
    norm[0] += norm[lane];
  }
  result[0] = error[0];
  result[1] = norm[0];
}

[[gnu::noinline]] void fill(float* out, float value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = value;
}

// Calls `function`, which must not be inlined, in the default floating-point environment.
template <auto function>
struct Entry;
template <typename... Arguments, void (*function)(Arguments...)>
struct Entry<function> {
  static void call(Arguments... arguments, Stream*) {
    const DefaultEnvironment environment;
    function(arguments...);
  }
};

#define SLIMPI_TEXT(name) #name
#define SLIMPI_NAME_TEXT(name) SLIMPI_TEXT(name)

}  // namespace

const Kernels table = {
    SLIMPI_NAME_TEXT(SLIMPI_CPU), Entry<encode>::call,
    Entry<decode>::call,          Entry<decode_add>::call,
    Entry<sum_encode>::call,      Entry<sum>::call,
    Entry<combine>::call,         Entry<find_nonfinite>::call,
    Entry<compare>::call,         Entry<fill>::call,
};

}  // namespace slimpi::kernels::SLIMPI_CPU
