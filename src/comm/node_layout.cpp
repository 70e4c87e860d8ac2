// SPDX-License-Identifier: BSD-3-Clause
#include "comm/node_layout.h"

#include <algorithm>

namespace slimpi::comm {

Range chunk_of(std::uint64_t count, int parts, int index, std::uint64_t align) {
  // All ranks pass the same count, parts and align, so they compute the same boundaries.
  const std::uint64_t blocks = (count + align - 1) / align;
  const std::uint64_t each = blocks / std::uint64_t(parts), more = blocks % std::uint64_t(parts);
  const std::uint64_t i = std::uint64_t(index);
  const std::uint64_t begin = std::min(count, (i * each + std::min(i, more)) * align);
  const std::uint64_t end = std::min(count, ((i + 1) * each + std::min(i + 1, more)) * align);
  return {begin, end - begin};
}

bool one_bucket(const kernels::Format& format) {
  return format.codec == kernels::Codec::quantized && format.bucket == 0;
}

std::uint64_t chunk_alignment(const kernels::Format& format) {
  if (format.codec == kernels::Codec::packed) return kernels::kPackedBucket;
  if (format.codec != kernels::Codec::quantized) return 64;
  return one_bucket(format) ? 1 : format.bucket;
}

std::uint64_t segment_alignment(const kernels::Format& format) {
  return format.codec == kernels::Codec::packed ? format.bucket : chunk_alignment(format);
}

kernels::Format with_tiles(const kernels::Format& format, std::uint64_t count, int parts) {
  return with_tiles_for_longest(format, chunk_of(count, parts, 0, chunk_alignment(format)).count);
}

kernels::Format with_tiles_for_longest(const kernels::Format& format, std::uint64_t longest) {
  if (format.codec != kernels::Codec::packed) return format;
  kernels::Format result = format;
  const std::uint64_t bucket = kernels::kPackedBucket;
  longest = std::max(bucket, longest);
  const std::uint64_t tiles = (longest + format.bucket - 1) / format.bucket;
  const std::uint64_t buckets = (longest + bucket - 1) / bucket;
  result.bucket = std::uint32_t((buckets + tiles - 1) / tiles * bucket);
  return result;
}

int nodes_by_options(const Config& config, int ranks) {
  if (config.hierarchy == Hierarchy::flat) return ranks;
  return config.ranks_per_node == 0 ? 0 : (ranks - 1) / int(config.ranks_per_node) + 1;
}

int NodeLayout::local_rank_of(int other) const {
  const std::vector<int>& theirs = ranks_on(node_of_rank(other));
  return int(std::find(theirs.begin(), theirs.end(), other) - theirs.begin());
}

std::uint64_t NodeLayout::part_of(std::uint64_t bytes, Hierarchy hierarchy) const {
  const bool flat = hierarchy == Hierarchy::flat, leader = hierarchy == Hierarchy::leader;
  const int owners = leader ? 1 : smallest;
  const int owner = leader ? local - leader_on(node()) : local;
  if (!flat && (owner < 0 || owner >= owners)) return 0;
  const auto parts = std::uint64_t(flat ? size : nodes() * owners);
  const auto part = std::uint64_t(flat ? rank : node() * owners + owner);
  return bytes / parts + (part < bytes % parts ? 1 : 0);
}

}  // namespace slimpi::comm
