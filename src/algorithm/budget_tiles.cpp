// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/budget_tiles.h"

#include <algorithm>

#include "algorithm/communicator.h"
#include "algorithm/node_sum.h"

namespace slimpi::algorithm {

namespace {

constexpr std::uint64_t kShortTile = 1024, kLongTile = 4096;  // elements

std::uint64_t tile_elements(std::uint64_t bucket) {
  if (bucket == 0 || bucket > kLongTile) return kLongTile;
  return bucket * ((kShortTile + bucket - 1) / bucket);
}

}  // namespace

BudgetTiles::BudgetTiles(const Call& call, const Rails& rails, Range slice)
    : layout_(call.communicator.layout()),
      rails_(rails),
      slice_(slice),
      bucket_(call.plan.format.bucket),
      length_(tile_elements(bucket_)),
      split_(bucket_ == 0 || bucket_ > kLongTile),
      members_(rails.flat ? call.communicator.size() : layout_.nodes()) {
  for (int rail = 0; rail < rails.rails; ++rail) add_tiles(call, rail);
}

void BudgetTiles::add_tiles(const Call& call, int rail) {
  const Range slice = slice_of(call.count, call.plan.format, rails_, rail);
  for (int member = 0; member < members_; ++member) {
    const std::uint64_t align = std::max<std::uint64_t>(bucket_, 1);
    const Range chunk = part_of(slice.count, members_, member, align);
    const std::uint64_t end = slice.first + chunk.first + chunk.count;
    const std::uint64_t stretch = !split_ ? length_ : bucket_ == 0 ? chunk.count : bucket_;
    for (std::uint64_t bucket = slice.first + chunk.first; bucket < end; bucket += stretch) {
      const Range whole{bucket, std::min(stretch, end - bucket)};
      for (std::uint64_t first = 0; first < whole.count; first += length_)
        tiles_.push_back(
            {rail, member, {bucket + first, std::min(length_, whole.count - first)}, whole});
    }
  }
}

int BudgetTiles::rank_of(const BudgetTile& tile, int member) const {
  return rails_.flat ? member : owner_on(layout_, rails_, member, tile.rail);
}

BudgetTiles::Extremes BudgetTiles::extremes_of(const Range& bucket, const float* values) {
  if (bucket.first != last_bucket_.first || bucket.count != last_bucket_.count) {
    const float* const first = values + (bucket.first - slice_.first);
    const auto [low, high] = std::minmax_element(first, first + bucket.count);
    last_bucket_ = bucket;
    last_extremes_ = {*low, *high};
  }
  return last_extremes_;
}

std::vector<TileFacts> BudgetTiles::own_facts(const float* values) {
  std::vector<TileFacts> facts;
  for (const BudgetTile& tile : tiles_) {
    if (tile.rail != rails_.rail) continue;
    const float* const first = values + (tile.part.first - slice_.first);
    facts.push_back(facts_of(first, tile.part.count, split_ ? tile.part.count : bucket_));
    if (!split_) continue;
    const Extremes extremes = extremes_of(tile.bucket, values);
    const double range = double(extremes.high) - double(extremes.low);
    facts.back().spread = range * range * double(tile.part.count);
  }
  return facts;
}

std::vector<float> BudgetTiles::floats_of(const BudgetTile& tile, const float* values) {
  const float* const first = values + (tile.part.first - slice_.first);
  std::vector<float> floats(first, first + tile.part.count);
  if (split_) {
    const Extremes extremes = extremes_of(tile.bucket, values);
    floats.insert(floats.end(), {extremes.low, extremes.high});
  }
  return floats;
}

}  // namespace slimpi::algorithm
