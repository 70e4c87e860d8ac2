// SPDX-License-Identifier: BSD-3-Clause
// Pieces in any coding: what a sum reads from, and the codings that are not quantized. Included by
// loops.cpp alone.
#pragma once
#include "kernels/cpu/buckets.h"

namespace slimpi::kernels {
namespace {

void to_halves(Coding coding, const float* SLIMPI_RESTRICT from, std::size_t n,
               std::uint16_t* SLIMPI_RESTRICT to) {
  if (coding == Coding::fp16)
    for (std::size_t i = 0; i < n; ++i) to[i] = to_fp16(from[i]);
  else
    for (std::size_t i = 0; i < n; ++i) to[i] = to_bf16(from[i]);
}

void from_halves(Coding coding, const std::uint16_t* SLIMPI_RESTRICT from, std::size_t n,
                 float* SLIMPI_RESTRICT to) {
  if (coding == Coding::fp16)
    for (std::size_t i = 0; i < n; ++i) to[i] = from_fp16(from[i]);
  else
    for (std::size_t i = 0; i < n; ++i) to[i] = from_bf16(from[i]);
}

// Encodes a tile as floats or halves. An element whose code is not finite keeps its residual.
void encode_plain_tile(Coding coding, const Values& values, std::size_t n, std::byte* out) {
  float summed[kTile], decoded[kTile];
  const float* from = values.in;
  if (values.residual != nullptr) {
    add_tiles(from, values.residual, n, summed);
    from = summed;
  }
  if (coding == Coding::float32)
    std::memcpy(out, from, n * sizeof(float));
  else
    to_halves(coding, from, n, (std::uint16_t*)out);
  if (values.residual == nullptr && values.decoded == nullptr) return;
  const float* back = from;
  if (coding != Coding::float32) {
    from_halves(coding, (const std::uint16_t*)out, n, decoded);
    back = decoded;
  }
  if (values.residual != nullptr)
    for (std::size_t i = 0; i < n; ++i)
      values.residual[i] = is_finite(back[i]) ? from[i] - back[i] : values.residual[i];
  if (values.decoded != nullptr) std::memmove(values.decoded, back, n * sizeof(float));
}

// Something that a sum reads: exact floats, or a stretch of an encoded piece. A stretch is a bucket
// of a quantized piece, and a tile of any other.
struct Source {
  Coding coding;
  const std::byte* data;  // floats or halves
  Bucket bucket;
};

// The stretch of n elements that starts at `data`.
Source open_source(const Format& format, const std::byte* data, std::size_t n) {
  Source source{format.coding, data, {}};
  if (format.coding == Coding::quantized) source.bucket = open_bucket(format, data, n);
  return source;
}
Source exact_source(const float* data) {
  return {Coding::float32, (const std::byte*)data, {}};
}

// to = elements first .. first + n - 1 of the source, at most a tile of them.
void read_source(const Source& source, std::size_t first, std::size_t n, float* to) {
  if (source.coding == Coding::quantized)
    read_bucket(source.bucket, first, n, to);
  else if (source.coding == Coding::float32)
    std::memcpy(to, (const float*)source.data + first, n * sizeof(float));
  else
    from_halves(source.coding, (const std::uint16_t*)source.data + first, n, to);
}

// to += them.
void accumulate_source(const Source& source, std::size_t first, std::size_t n, float* to) {
  if (source.coding == Coding::quantized) {
    accumulate_bucket(source.bucket, first, n, to);
  } else if (source.coding == Coding::float32) {
    accumulate((const float*)source.data + first, n, to);
  } else {
    float decoded[kTile];
    from_halves(source.coding, (const std::uint16_t*)source.data + first, n, decoded);
    accumulate(decoded, n, to);
  }
}

// The elements of a stretch, and the bytes of the encoded one.
std::size_t stretch_elements(const Format& format, std::size_t count) {
  return format.coding == Coding::quantized ? bucket_elements(format, count) : kTile;
}

}  // namespace
}  // namespace slimpi::kernels
