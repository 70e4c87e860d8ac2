// SPDX-License-Identifier: BSD-3-Clause
// The host's kernels, compiled once per instruction set; SLIMPI_CPU is the name of the copy. Only
// its table has external linkage: if inline functions had it, the linker would keep one copy for
// all instruction sets, and an old CPU would run instructions that it lacks.
#include "kernels/cpu/float64.h"
#include "kernels/cpu/float_environment.h"
#include "kernels/cpu/low_rank.h"
#include "kernels/cpu/segments.h"

namespace slimpi::kernels::SLIMPI_CPU {
extern const Kernels table;

namespace {

[[gnu::noinline]] void encode(const Format& format, const RandomStream& random, const float* in,
                              float* residual, std::size_t count, std::byte* out) {
  if (format.codec == Codec::float64) {
    std::memcpy(out, in, count * sizeof(float));
    return;
  }
  const BorrowedScratch borrowed;
  Scratch& scratch = *borrowed;
  const std::size_t segment = segment_elements(format, count);
  RandomStream from = random;
  for (std::size_t i = 0; i < count; i += segment) {
    const std::size_t n = count - i < segment ? count - i : segment;
    from.first = random.first + i;
    if (format.codec == Codec::packed) {
      encode_packed(format, in + i, residual == nullptr ? nullptr : residual + i, n, nullptr,
                    in + i + n, scratch.plan, out);
    } else if (format.codec != Codec::quantized) {
      encode_plain(format.codec, in + i, residual == nullptr ? nullptr : residual + i, nullptr, n,
                   scratch, out);
    } else if (residual != nullptr) {
      encode_with_residual(format, from, in + i, residual + i, n, scratch, out);
    } else {
      Extremes extremes = no_extremes();
      const float* upcoming = n <= kTile ? in + i + n : nullptr;
      if (upcoming != nullptr)
        include_tile_and_prefetch(extremes, in + i, n, upcoming);
      else
        include_tile(extremes, in + i, n);
      encode_bucket(format, from, header_of(extremes),
                    {in + i, nullptr, 0, nullptr, nullptr, upcoming}, n, scratch, out);
    }
    out += encoded_bytes(format, n);
  }
}

[[gnu::noinline]] void decode(const Format& format, const std::byte* in, std::size_t count,
                              float* out) {
  if (format.codec == Codec::float64) {
    std::memcpy(out, in, count * sizeof(float));
    return;
  }
  const BorrowedScratch borrowed;
  Scratch& scratch = *borrowed;
  Source& source = scratch.sources[0];
  const std::size_t segment = segment_elements(format, count);
  for (std::size_t i = 0; i < count; i += segment) {
    const std::size_t n = count - i < segment ? count - i : segment;
    open_source(format, in, n, scratch, source);
    for (std::size_t j = 0; j < n; j += kTile) read_source(source, j, tile_at(j, n), out + i + j);
    in += encoded_bytes(format, n);
  }
}

[[gnu::noinline]] void decode_add(const Format& format, const std::byte* in, std::size_t count,
                                  float* out) {
  if (format.codec == Codec::float64) {
    const Addend addend{in, nullptr};
    sum_doubles(&addend, 1, out, count / 2, nullptr, out);
    return;
  }
  const BorrowedScratch borrowed;
  Scratch& scratch = *borrowed;
  Source& source = scratch.sources[0];
  const std::size_t segment = segment_elements(format, count);
  for (std::size_t i = 0; i < count; i += segment) {
    const std::size_t n = count - i < segment ? count - i : segment;
    open_source(format, in, n, scratch, source);
    for (std::size_t j = 0; j < n; j += kTile) {
      float* const to = out + i + j;
      add_source(source, j, tile_at(j, n), to, to);
    }
    in += encoded_bytes(format, n);
  }
}

[[gnu::noinline]] void sum_encode(const Format& format, const RandomStream& random,
                                  const Addend* addends, int addend_count, const float* carry,
                                  float* residual, std::size_t count, std::byte* out,
                                  float* result) {
  if (format.codec == Codec::float64) {
    sum_doubles(addends, addend_count, carry, count / 2, out, result);
    return;
  }
  const BorrowedScratch borrowed;
  Scratch& scratch = *borrowed;
  Source* const sources = scratch.sources;
  const std::size_t segment = segment_elements(format, count);
  RandomStream from = random;
  std::size_t encoded_offset = 0;  // the bytes before this bucket or tile
  for (std::size_t i = 0; i < count; i += segment) {
    const std::size_t n = count - i < segment ? count - i : segment;
    int source_count = 0;
    if (carry != nullptr) open_exact(carry + i, sources[source_count++]);
    for (int a = 0; a < addend_count; ++a)
      if (addends[a].encoded == nullptr)
        open_exact(addends[a].exact + i, sources[source_count++]);
      else
        open_source(format, addends[a].encoded + encoded_offset, n, scratch,
                    sources[source_count++]);
    float* const decoded = result + i;
    float* const kept = residual == nullptr ? nullptr : residual + i;
    const bool quantizes = out != nullptr && format.codec == Codec::quantized;
    // A sum that is quantized right away stays in L1, in scratch.tile.
    float* const total = quantizes && n <= kTile ? scratch.tile : decoded;
    Extremes extremes = no_extremes();
    double slack = 0;
    if (any_near_overflow(format, sources, source_count, &slack)) [[unlikely]] {
      sum_near_overflow(sources, source_count, n, slack, scratch, total);
      if (quantizes) include_tile(extremes, total, n);
    } else {
      sum_sources(sources, source_count, n, total, scratch.back, quantizes ? &extremes : nullptr);
    }
    if (quantizes) {
      Header header = header_of(extremes);
      // Residuals are not added to a non-finite bucket, because parts of its `total` were not
      // written (see include_bucket()).
      if (kept != nullptr && !is_nonfinite(header)) {
        const float limit = residual_limit(format, header);
        extremes = no_extremes();
        include_residual(extremes, total, kept, limit, n, total);
        header = with_residuals(format, header, extremes, limit);
      }
      from.first = random.first + i;
      encode_bucket(format, from, header, {total, nullptr, 0, kept, decoded, nullptr}, n, scratch,
                    out + encoded_offset);
    } else if (out != nullptr && format.codec == Codec::packed) {
      encode_packed(format, total, kept, n, decoded, nullptr, scratch.plan, out + encoded_offset);
    } else if (out != nullptr) {
      encode_plain(format.codec, total, kept, decoded, n, scratch, out + encoded_offset);
    }
    encoded_offset += encoded_bytes(format, n);
  }
}

[[gnu::noinline]] void sum(const float* const* in, int in_count, std::size_t count, float* out) {
  const BorrowedScratch borrowed;
  float* const total = (*borrowed).tile;
  for (std::size_t i = 0; i < count; i += kTile) {
    const std::size_t n = tile_at(i, count);
    if (in_count == 1) std::memmove(out + i, in[0] + i, n * sizeof(float));
    if (in_count == 2) add_tiles(in[0] + i, in[1] + i, n, out + i);
    if (in_count < 3) continue;
    // `out` may be any of the inputs, so it is written only once the last inputs are added.
    const float* sum = in[0] + i;
    int next = 1;
    for (; next + 2 < in_count; next += 2) {
      add_tiles(sum, in[next] + i, in[next + 1] + i, n, total);
      sum = total;
    }
    if (next + 2 == in_count)
      add_tiles(sum, in[next] + i, in[next + 1] + i, n, out + i);
    else
      add_tiles(sum, in[next] + i, n, out + i);
  }
}

[[gnu::noinline]] void combine(float a, const float* x, float b, const float* y, std::size_t count,
                               float* out) {
  if (b == 0) {
    // Adding -0 changes no number, but turns any NaN into kNanBits.
    SLIMPI_ELEMENTWISE
    for (std::size_t i = 0; i < count; ++i) out[i] = add(a * x[i], -0.0f);
    return;
  }
  SLIMPI_ELEMENTWISE
  for (std::size_t i = 0; i < count; ++i) out[i] = add(a * x[i], b * y[i]);
}

[[gnu::noinline]] void find_beyond(const float* in, float limit, std::size_t count, int* found) {
  *found = 0;
  const std::uint32_t most = bits_of(limit);
  for (std::size_t i = 0; i < count && *found == 0; i += kTile) {
    const std::size_t n = tile_at(i, count);
    std::uint32_t greatest = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const std::uint32_t magnitude = bits_of(in[i + j]) & 0x7fffffff;
      greatest = greatest > magnitude ? greatest : magnitude;
    }
    *found = greatest > most;
  }
}

// Kernels::compare. Adds into sixteen partial sums, so that every instruction set adds in the same
// order.
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

[[gnu::noinline]] void low_rank(const LowRank& factors, const float* in, float share,
                                float* residual, std::size_t count, float* out) {
  const std::size_t columns = factors.columns;
  for (std::size_t block = 0; block * columns < count; block += kBlockRows)
    for (std::size_t panel = 0; panel < columns; panel += kPanel)
      for (std::size_t row = block; row < block + kBlockRows && row * columns < count; ++row) {
        const std::size_t left = count - row * columns, width = left < columns ? left : columns;
        const std::size_t end = width < panel + kPanel ? width : panel + kPanel;
        float weights[kMaxRank];
        for (int k = 0; k < factors.rank; ++k)
          weights[k] = factors.p[std::size_t(k) * factors.rows + row];
        for (std::size_t j = panel; j < end; j += kChunk) {
          const std::size_t n = end - j < kChunk ? end - j : kChunk, at = row * columns + j;
          float total[kChunk];
          multiply_chunk(weights, factors.q + j, columns, factors.rank, n, total);
          if (residual != nullptr)
            keep_rest(in + at, total, share, n, residual + at, out + at);
          else
            std::memcpy(out + at, total, n * sizeof(float));
        }
      }
}

[[gnu::noinline]] void multiply(const Product& product) {
  if (product.transposed != 0)
    multiply_transposed(product);
  else
    multiply_plain(product);
}

bool multiply_here(const Product& product, Stream*) {
  const DefaultEnvironment environment;
  multiply(product);
  return true;
}

[[gnu::noinline]] void narrow(const double* in, std::size_t count, const Float64Limits& limits,
                              float* out, bool* holds) {
  *holds = true;
  for (std::size_t i = 0; i < count && *holds;) {
    const std::size_t left = count - i, n = left / 2 < limits.block ? left : limits.block;
    Found found = nothing_found();
    narrow_block(in + i, n, found, out + i);
    *holds = can_hold(found, limits.greatest);
    i += n;
  }
}

[[gnu::noinline]] void widen(const float* SLIMPI_RESTRICT in, std::size_t count,
                             double* SLIMPI_RESTRICT out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = in[i];
}

// Runs the kernel `function`, which must not be inlined, in the default floating-point environment.
// The entries of the table are such wrappers.
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
    SLIMPI_NAME_TEXT(SLIMPI_CPU),
    Entry<encode>::call,
    Entry<decode>::call,
    Entry<decode_add>::call,
    Entry<sum_encode>::call,
    Entry<sum>::call,
    Entry<combine>::call,
    Entry<find_beyond>::call,
    Entry<compare>::call,
    Entry<fill>::call,
    Entry<low_rank>::call,
    multiply_here,
    nullptr,
    Entry<narrow>::call,
    Entry<widen>::call,
};

}  // namespace slimpi::kernels::SLIMPI_CPU
