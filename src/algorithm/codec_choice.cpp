// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/codec_choice.h"

#include <algorithm>
#include <cmath>
#include <memory_resource>
#include <vector>

#include "algorithm/error_bound.h"
#include "algorithm/error_estimate.h"
#include "algorithm/sample_tiles.h"
#include "base/hash.h"
#include "comm/communicator.h"

namespace slimpi::algorithm {

namespace {

constexpr std::uint64_t kTilesPerDraw = 32, kFewestDraws = 4, kMostDraws = 32;
constexpr int kExact = kExactCodec;
// Larger sums may saturate, and the error of a saturated sum has no bound.
constexpr double kGreatestSum = 0x1p126;

// A pseudo-random number in [0, 1).
double fraction_of(std::uint64_t index) {
  return double(splitmix64(0, index) >> 11) * 0x1p-53;
}

// What rank 0 sends to the others. It is sent as it lies in memory.
struct Decision {
  std::uint64_t codec = kExact;
  std::uint64_t drawn = 0;  // tiles; 0: the codec is final
  double peak = 0;          // the bound of all sums
};

// The messages between rank 0, which leads, and each other rank, in their order:
//   1. to rank 0, from a rank with a shard: the facts of its tiles
//   2. from rank 0: a Decision. If no tile was drawn, this is the last message.
//   3. from rank 0: the drawn tiles
//   4. to rank 0, from a rank with a shard: its floats of the drawn tiles of its shard, one message
//      for each tile
//   5. from rank 0: a Decision with the codec
class Chooser {
 public:
  Chooser(comm::Call& call, const comm::InterNodeGroup& group, comm::Range shard)
      : call_(call),
        group_(group),
        communicator_(call.communicator),
        exchange_(call.communicator.exchange()),
        memory_(&call.scratch.objects),
        tiles_(call, group, shard),
        drawn_(memory_) {}

  Status run(const float* values, ChosenCodec* chosen) {
    Decision decision;
    SLIMPI_TRY(communicator_.rank() == 0 ? lead(values, &decision) : follow(values, &decision));
    *chosen = {int(decision.codec), decision.peak};
    return Status::ok;
  }

 private:
  Status lead(const float* values, Decision* decision);
  Status follow(const float* values, Decision* decision);
  std::uint64_t most_draws() const;
  Status receive_facts(const float* values, std::pmr::vector<TileFacts>* facts);
  Status receive_samples(const float* values, std::pmr::vector<Sample>* samples);
  int decide(double peak, std::span<const Sample> samples) const;
  Status send_to_all(const void* data, std::size_t bytes);
  Status send(int to, const void* data, std::size_t bytes);
  Status receive(int from, void* data, std::size_t bytes);

  comm::Call& call_;
  const comm::InterNodeGroup& group_;
  comm::Communicator& communicator_;
  comm::Exchange& exchange_;
  std::pmr::memory_resource* const memory_;  // of all lists here
  SampleTiles tiles_;
  std::pmr::vector<Drawn> drawn_;
};

std::uint64_t Chooser::most_draws() const {
  constexpr std::uint64_t kMostFloats = 4u << 20;  // on rank 0
  const std::uint64_t fit = kMostFloats / (tiles_.length() * std::uint64_t(tiles_.group_size()));
  const std::uint64_t wanted =
      std::clamp<std::uint64_t>(tiles_.all().size() / kTilesPerDraw, kFewestDraws, kMostDraws);
  return std::max(kFewestDraws, std::min(wanted, fit));
}

Status Chooser::send(int to, const void* data, std::size_t bytes) {
  return exchange_.send_settled(to, comm::Tag::error_estimate, data, bytes);
}

Status Chooser::receive(int from, void* data, std::size_t bytes) {
  return exchange_.receive_settled(from, comm::Tag::error_estimate, data, bytes);
}

Status Chooser::send_to_all(const void* data, std::size_t bytes) {
  for (int to = 1; to < communicator_.size(); ++to) SLIMPI_TRY(send(to, data, bytes));
  return Status::ok;
}

// Rank 0: receives the facts of all ranks and adds them in rank order.
Status Chooser::receive_facts(const float* values, std::pmr::vector<TileFacts>* facts) {
  const std::pmr::vector<SampleTile>& tiles = tiles_.all();
  facts->resize(tiles.size());
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const int shard_index =
        group_.flat ? 0 : comm::shard_of_rank(communicator_.layout(), group_, rank);
    std::pmr::vector<TileFacts> theirs(memory_);
    if (rank == 0) {
      theirs = tiles_.own_facts(values);
    } else if (shard_index >= 0) {
      theirs.resize(
          std::size_t(std::count_if(tiles.begin(), tiles.end(), [&](const SampleTile& tile) {
            return tile.shard_index == shard_index;
          })));
      SLIMPI_TRY(receive(rank, theirs.data(), theirs.size() * sizeof(TileFacts)));
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i < tiles.size() && next < theirs.size(); ++i) {
      if (tiles[i].shard_index != shard_index) continue;
      (*facts)[i].energy += theirs[next].energy;
      (*facts)[i].spread += theirs[next].spread;
      (*facts)[i].peak += theirs[next++].peak;
    }
  }
  return Status::ok;
}

// Rank 0: receives the floats of the drawn tiles from all ranks.
Status Chooser::receive_samples(const float* values, std::pmr::vector<Sample>* samples) {
  for (const Drawn& drawn : drawn_) {
    const SampleTile& tile = tiles_.all()[drawn.tile];
    Sample& sample = samples->emplace_back(memory_);
    sample.weight = drawn.weight;
    sample.certain = drawn.certain;
    sample.first = tile.part.first;
    sample.count = tile.part.count;
    sample.owner = tile.owner;
    sample.extra = tiles_.split() ? 2 : 0;
    sample.values.reserve(sample.length() * std::size_t(tiles_.group_size()));
    for (int member = 0; member < tiles_.group_size(); ++member) {
      const int rank = tiles_.rank_of(tile, member);
      sample.ranks.push_back(rank);
      if (rank == 0) {
        tiles_.append_floats(tile, values, &sample.values);
        continue;
      }
      sample.values.resize(sample.values.size() + sample.length());
      SLIMPI_TRY(receive(rank, sample.values.data() + sample.values.size() - sample.length(),
                         sample.length() * sizeof(float)));
    }
  }
  return Status::ok;
}

// Rank 0: the cheapest codec whose estimate is under the error bound. The error is about inversely
// proportional to the number of levels, so codecs that are clearly too coarse are skipped.
int Chooser::decide(double peak, std::span<const Sample> samples) const {
  const double allowed = call_.plan.max_error / (1 + call_.plan.max_error);
  const kernels::RandomStream draw{communicator_.config().seed, 0, call_.number, 0};
  const std::uint64_t tiles = call_.count / check_tile_elements(call_.count) + 1;
  std::pmr::vector<Trial> trials(samples.size(), memory_);
  for (int index = 0; index < kExact; ++index) {
    if (!holds(index, peak)) break;
    for (std::size_t i = 0; i < samples.size(); ++i)
      trials[i] = try_codec(codec_at(call_.plan.format, index), draw, samples[i], memory_);
    const Estimate found = estimate(samples, trials, tiles);
    if (found.cautious <= allowed) return index;
    if (!std::isfinite(found.relative)) break;
    const double steps = found.relative * (std::exp2(index + 1) - 1);
    while (index + 1 < kQuantizers && steps / (std::exp2(index + 2) - 1) > 2 * allowed) ++index;
  }
  return kExact;
}

Status Chooser::lead(const float* values, Decision* decision) {
  std::pmr::vector<TileFacts> facts(memory_);
  SLIMPI_TRY(receive_facts(values, &facts));  // 1
  double all = 0;
  for (const TileFacts& fact : facts) {
    decision->peak = std::max(decision->peak, fact.peak);
    all += fact.energy + fact.spread;
  }
  // Every codec encodes zeros exactly. With an infinity or a NaN the error is unknown, so the
  // codec stays exact.
  if (all == 0)
    decision->codec = 0;
  else if (std::isfinite(all) && decision->peak <= kGreatestSum)
    drawn_ = draw_tiles(facts, most_draws(),
                        fraction_of(communicator_.config().seed + call_.number), memory_);
  decision->drawn = drawn_.size();
  SLIMPI_TRY(send_to_all(decision, sizeof *decision));  // 2
  if (drawn_.empty()) return Status::ok;
  SLIMPI_TRY(send_to_all(drawn_.data(), drawn_.size() * sizeof(Drawn)));  // 3
  std::pmr::vector<Sample> samples(memory_);
  samples.reserve(drawn_.size());
  SLIMPI_TRY(receive_samples(values, &samples));  // 4
  decision->codec = std::uint64_t(decide(decision->peak, samples));
  return send_to_all(decision, sizeof *decision);  // 5
}

Status Chooser::follow(const float* values, Decision* decision) {
  const bool mine = group_.shard_index >= 0;
  if (mine) {
    const std::pmr::vector<TileFacts> facts = tiles_.own_facts(values);
    SLIMPI_TRY(send(0, facts.data(), facts.size() * sizeof(TileFacts)));  // 1
  }
  SLIMPI_TRY(receive(0, decision, sizeof *decision));  // 2
  if (decision->drawn == 0) return Status::ok;
  drawn_.resize(decision->drawn);
  SLIMPI_TRY(receive(0, drawn_.data(), drawn_.size() * sizeof(Drawn)));  // 3
  for (const Drawn& drawn : drawn_) {
    const SampleTile& tile = tiles_.all()[drawn.tile];
    if (!mine || tile.shard_index != group_.shard_index) continue;
    std::pmr::vector<float> floats(memory_);
    tiles_.append_floats(tile, values, &floats);
    SLIMPI_TRY(send(0, floats.data(), floats.size() * sizeof(float)));  // 4
  }
  return receive(0, decision, sizeof *decision);  // 5
}

}  // namespace

Status choose_codec(comm::Call& call, const comm::InterNodeGroup& group, comm::Range shard,
                    const float* in, ChosenCodec* chosen) {
  const Timed timed(call.communicator.statistics(), Stage::exchange, "estimate", 4 * call.count);
  return Chooser(call, group, shard).run(in, chosen);
}

}  // namespace slimpi::algorithm
