// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/sample_tiles.h"

#include <algorithm>

#include "comm/communicator.h"
#include "intra/intra_node.h"

namespace slimpi::algorithm {

namespace {

constexpr std::uint64_t kShortTile = 1024, kLongTile = 4096;  // elements

std::uint64_t tile_elements(std::uint64_t bucket) {
  if (bucket == 0 || bucket > kLongTile) return kLongTile;
  return bucket * ((kShortTile + bucket - 1) / bucket);
}

}  // namespace

SampleTiles::SampleTiles(const comm::Call& call, const comm::InterNodeGroup& group,
                         comm::Range shard)
    : layout_(call.communicator.layout()),
      group_(group),
      shard_(shard),
      bucket_(call.plan.format.bucket),
      length_(tile_elements(bucket_)),
      split_(bucket_ == 0 || bucket_ > kLongTile),
      group_size_(group.flat ? call.communicator.size() : layout_.nodes()),
      tiles_(&call.scratch.objects) {
  for (int shard_index = 0; shard_index < group.shards; ++shard_index) add_tiles(call, shard_index);
}

void SampleTiles::add_tiles(const comm::Call& call, int shard_index) {
  const comm::Range shard = intra::shard_range(call.count, call.plan.format, group_, shard_index);
  for (int member = 0; member < group_size_; ++member) {
    const std::uint64_t align = std::max<std::uint64_t>(bucket_, 1);
    const comm::Range chunk = comm::chunk_of(shard.count, group_size_, member, align);
    const std::uint64_t end = shard.first + chunk.first + chunk.count;
    const std::uint64_t run = !split_ ? length_ : bucket_ == 0 ? chunk.count : bucket_;
    for (std::uint64_t bucket = shard.first + chunk.first; bucket < end; bucket += run) {
      const comm::Range whole{bucket, std::min(run, end - bucket)};
      for (std::uint64_t first = 0; first < whole.count; first += length_)
        tiles_.push_back(
            {shard_index, member, {bucket + first, std::min(length_, whole.count - first)}, whole});
    }
  }
}

int SampleTiles::rank_of(const SampleTile& tile, int member) const {
  return group_.flat ? member : comm::owner_on(layout_, group_, member, tile.shard_index);
}

SampleTiles::Extremes SampleTiles::extremes_of(const comm::Range& bucket, const float* values) {
  if (bucket.first != last_bucket_.first || bucket.count != last_bucket_.count) {
    const float* const first = values + (bucket.first - shard_.first);
    const auto [low, high] = std::minmax_element(first, first + bucket.count);
    last_bucket_ = bucket;
    last_extremes_ = {*low, *high};
  }
  return last_extremes_;
}

std::pmr::vector<TileFacts> SampleTiles::own_facts(const float* values) {
  std::pmr::vector<TileFacts> facts(tiles_.get_allocator());
  for (const SampleTile& tile : tiles_) {
    if (tile.shard_index != group_.shard_index) continue;
    const float* const first = values + (tile.part.first - shard_.first);
    facts.push_back(facts_of(first, tile.part.count, split_ ? tile.part.count : bucket_));
    if (!split_) continue;
    const Extremes extremes = extremes_of(tile.bucket, values);
    const double range = double(extremes.high) - double(extremes.low);
    facts.back().spread = range * range * double(tile.part.count);
  }
  return facts;
}

void SampleTiles::append_floats(const SampleTile& tile, const float* values,
                                std::pmr::vector<float>* floats) {
  const float* const first = values + (tile.part.first - shard_.first);
  floats->insert(floats->end(), first, first + tile.part.count);
  if (!split_) return;
  const Extremes extremes = extremes_of(tile.bucket, values);
  floats->insert(floats->end(), {extremes.low, extremes.high});
}

}  // namespace slimpi::algorithm
