// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/budget.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "algorithm/budget_trial.h"
#include "algorithm/communicator.h"
#include "algorithm/error_bound.h"
#include "algorithm/node_sum.h"

namespace slimpi::algorithm {

namespace {

using kernels::Coding;

constexpr std::uint64_t kShortTile = 1024, kLongTile = 4096;  // elements
constexpr std::uint64_t kTilesPerDraw = 32, kFewestDraws = 4, kMostDraws = 32;
constexpr double kGreatestHalf = 65504;

constexpr int kHalves = 8, kExact = kExactCoding;  // places among the codings
// Sums beyond it may saturate, whose error nobody bounds.
constexpr double kGreatestSum = 0x1p126;

// A tile is one bucket, or several short ones, or a part of a long one.
std::uint64_t tile_elements(std::uint64_t bucket) {
  if (bucket == 0 || bucket > kLongTile) return kLongTile;
  return bucket * ((kShortTile + bucket - 1) / bucket);
}

struct Extremes {
  float low, high;
};

// A number in [0, 1) that looks random.
double fraction_of(std::uint64_t index) {
  std::uint64_t z = (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return double((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

class Chooser {
 public:
  Chooser(Call& call, const Rails& rails, Range slice)
      : call_(call),
        rails_(rails),
        slice_(slice),
        communicator_(call.communicator),
        exchange_(call.communicator.exchange()),
        bucket_(call.plan.format.bucket),
        length_(tile_elements(bucket_)),
        split_(bucket_ == 0 || bucket_ > kLongTile),
        members_(rails.flat ? communicator_.size() : communicator_.layout().nodes()) {
    for (int rail = 0; rail < rails.rails; ++rail) add_tiles(rail);
  }

  Status run(const float* values, int* chosen);

 private:
  struct Tile {
    int rail, owner;
    Range part;    // of the buffer
    Range bucket;  // the bucket that it lies in, where buckets are longer
  };

  void add_tiles(int rail);
  int rank_of(const Tile& tile, int member) const;
  std::uint64_t most_draws() const;
  Extremes extremes_of(const Range& bucket, const float* values);
  std::vector<TileFacts> own_facts(const float* values);
  std::vector<float> floats_of(const Tile& tile, const float* values);
  Status hear_facts(const float* values, std::vector<TileFacts>* facts);
  Status hear_samples(const float* values, std::vector<Sample>* samples);
  int decide(double peak, const std::vector<Sample>& samples) const;
  Status tell_all(const void* data, std::size_t bytes);
  Status send(int to, const void* data, std::size_t bytes);
  Status receive(int from, void* data, std::size_t bytes);

  Call& call_;
  const Rails& rails_;
  const Range slice_;
  Communicator& communicator_;
  Exchange& exchange_;
  const std::uint64_t bucket_, length_;
  const bool split_;  // buckets are longer than tiles
  const int members_;
  std::vector<Tile> tiles_;
  std::vector<Drawn> drawn_;
  Range last_bucket_;  // whose extremes are known
  Extremes last_extremes_{};
};

// Buckets and chunks begin at tiles' beginnings, so a tile has one owner and, split, one bucket.
void Chooser::add_tiles(int rail) {
  const Range slice = slice_of(call_.count, call_.plan.format, rails_, rail);
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

int Chooser::rank_of(const Tile& tile, int member) const {
  return rails_.flat ? member : owner_on(communicator_.layout(), rails_, member, tile.rail);
}

std::uint64_t Chooser::most_draws() const {
  constexpr std::uint64_t kMostFloats = 4u << 20;  // on rank 0
  const std::uint64_t fit = kMostFloats / (length_ * std::uint64_t(members_));
  const std::uint64_t wanted =
      std::clamp<std::uint64_t>(tiles_.size() / kTilesPerDraw, kFewestDraws, kMostDraws);
  return std::max(kFewestDraws, std::min(wanted, fit));
}

Status Chooser::send(int to, const void* data, std::size_t bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  Status status = exchange_.send(to, Tag::budget, data, bytes, request);
  if (status == Status::ok) status = exchange_.wait(request);
  return exchange_.settle(status, {&request, 1});
}

Status Chooser::receive(int from, void* data, std::size_t bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  Status status = exchange_.receive(from, Tag::budget, data, bytes, request);
  if (status == Status::ok) status = exchange_.wait(request);
  return exchange_.settle(status, {&request, 1});
}

Status Chooser::tell_all(const void* data, std::size_t bytes) {
  for (int to = 1; to < communicator_.size(); ++to) SLIMPI_TRY(send(to, data, bytes));
  return Status::ok;
}

Extremes Chooser::extremes_of(const Range& bucket, const float* values) {
  if (bucket.first != last_bucket_.first || bucket.count != last_bucket_.count) {
    const float* const first = values + (bucket.first - slice_.first);
    const auto [low, high] = std::minmax_element(first, first + bucket.count);
    last_bucket_ = bucket;
    last_extremes_ = {*low, *high};
  }
  return last_extremes_;
}

// What this rank knows of the tiles of its rail.
std::vector<TileFacts> Chooser::own_facts(const float* values) {
  std::vector<TileFacts> facts;
  for (const Tile& tile : tiles_) {
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

std::vector<float> Chooser::floats_of(const Tile& tile, const float* values) {
  const float* const first = values + (tile.part.first - slice_.first);
  std::vector<float> floats(first, first + tile.part.count);
  if (split_) {
    const Extremes extremes = extremes_of(tile.bucket, values);
    floats.insert(floats.end(), {extremes.low, extremes.high});
  }
  return floats;
}

// Rank 0: adds up what the ranks say, in their order.
Status Chooser::hear_facts(const float* values, std::vector<TileFacts>* facts) {
  facts->resize(tiles_.size());
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const int rail = rails_.flat ? 0 : rail_of(communicator_.layout(), rails_, rank);
    std::vector<TileFacts> theirs;
    if (rank == 0) {
      theirs = own_facts(values);
    } else if (rail >= 0) {
      theirs.resize(std::size_t(std::count_if(
          tiles_.begin(), tiles_.end(), [&](const Tile& tile) { return tile.rail == rail; })));
      SLIMPI_TRY(receive(rank, theirs.data(), theirs.size() * sizeof(TileFacts)));
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i < tiles_.size() && next < theirs.size(); ++i) {
      if (tiles_[i].rail != rail) continue;
      (*facts)[i].energy += theirs[next].energy;
      (*facts)[i].spread += theirs[next].spread;
      (*facts)[i].peak += theirs[next++].peak;
    }
  }
  return Status::ok;
}

// Rank 0: gets the floats of the drawn tiles together.
Status Chooser::hear_samples(const float* values, std::vector<Sample>* samples) {
  for (const Drawn& drawn : drawn_) {
    const Tile& tile = tiles_[drawn.tile];
    Sample sample;
    sample.weight = drawn.weight;
    sample.certain = drawn.certain;
    sample.first = tile.part.first;
    sample.count = tile.part.count;
    sample.owner = tile.owner;
    sample.extra = split_ ? 2 : 0;
    for (int member = 0; member < members_; ++member) {
      const int rank = rank_of(tile, member);
      std::vector<float> floats(tile.part.count + std::uint64_t(sample.extra));
      if (rank == 0)
        floats = floats_of(tile, values);
      else
        SLIMPI_TRY(receive(rank, floats.data(), floats.size() * sizeof(float)));
      sample.values.push_back(std::move(floats));
      sample.ranks.push_back(rank);
    }
    samples->push_back(std::move(sample));
  }
  return Status::ok;
}

// Rank 0: the first coding under the budget. Errors shrink about as levels grow, so codings that
// can not do are skipped.
int Chooser::decide(double peak, const std::vector<Sample>& samples) const {
  const double budget = call_.plan.max_error / (1 + call_.plan.max_error);
  const kernels::Draw draw{communicator_.config().seed, 0, call_.number, 0};
  const std::uint64_t tiles = call_.count / check_tile_elements(call_.count) + 1;
  std::vector<Trial> trials(samples.size());
  for (int index = 0; index < kExact; ++index) {
    if (index == kHalves && peak > kGreatestHalf) break;
    for (std::size_t i = 0; i < samples.size(); ++i)
      trials[i] = try_coding(coding_at(call_.plan.format, index), draw, samples[i]);
    const Estimate found = estimate(samples, trials, tiles);
    if (found.cautious <= budget) return index;
    if (!std::isfinite(found.relative)) break;
    const double steps = found.relative * (std::exp2(index + 1) - 1);
    while (index + 1 < kHalves && steps / (std::exp2(index + 2) - 1) > 2 * budget) ++index;
  }
  return kExact;
}

Status Chooser::run(const float* values, int* chosen) {
  const bool mine = rails_.rail >= 0;
  std::uint64_t answer[2] = {kExact, 0};  // the coding, how many tiles were drawn
  if (communicator_.rank() != 0) {
    if (mine) {
      const std::vector<TileFacts> facts = own_facts(values);
      SLIMPI_TRY(send(0, facts.data(), facts.size() * sizeof(TileFacts)));
    }
    SLIMPI_TRY(receive(0, answer, sizeof answer));
    drawn_.resize(answer[1]);
    if (!drawn_.empty()) {
      SLIMPI_TRY(receive(0, drawn_.data(), drawn_.size() * sizeof(Drawn)));
      for (const Drawn& drawn : drawn_)
        if (mine && tiles_[drawn.tile].rail == rails_.rail) {
          const std::vector<float> floats = floats_of(tiles_[drawn.tile], values);
          SLIMPI_TRY(send(0, floats.data(), floats.size() * sizeof(float)));
        }
      SLIMPI_TRY(receive(0, answer, sizeof answer));
    }
    *chosen = int(answer[0]);
    return Status::ok;
  }

  std::vector<TileFacts> facts;
  SLIMPI_TRY(hear_facts(values, &facts));
  double peak = 0, all = 0;
  for (const TileFacts& fact : facts) {
    peak = std::max(peak, fact.peak);
    all += fact.energy + fact.spread;
  }
  // Zeros are zeros in any coding. Where there is an infinity or a NaN nothing can be said of
  // errors.
  if (all == 0)
    answer[0] = 0;
  else if (std::isfinite(all) && peak <= kGreatestSum)
    drawn_ =
        draw_tiles(facts, most_draws(), fraction_of(communicator_.config().seed + call_.number));
  answer[1] = drawn_.size();
  SLIMPI_TRY(tell_all(answer, sizeof answer));
  if (!drawn_.empty()) {
    SLIMPI_TRY(tell_all(drawn_.data(), drawn_.size() * sizeof(Drawn)));
    std::vector<Sample> samples;
    SLIMPI_TRY(hear_samples(values, &samples));
    answer[0] = std::uint64_t(decide(peak, samples));
    SLIMPI_TRY(tell_all(answer, sizeof answer));
  }
  *chosen = int(answer[0]);
  return Status::ok;
}

}  // namespace

kernels::Format coding_at(const kernels::Format& quantizer, int index) {
  kernels::Format format = quantizer;
  if (index < kHalves) {
    format.coding = Coding::quantized;
    format.bits = std::uint8_t(index + 1);
  } else {
    format.coding = index == kHalves ? Coding::fp16 : Coding::float32;
  }
  return format;
}

int finer_coding(int index, double excess) {
  // Errors shrink about as levels grow; a little more, lest the next one fails by as little.
  const double wanted = 1.05 * excess * (std::exp2(index + 1) - 1);
  for (int finer = index + 1; finer < kHalves; ++finer)
    if (std::exp2(finer + 1) - 1 >= wanted) return finer;
  return kExact;
}

Status choose_coding(Call& call, const Rails& rails, Range slice, const float* in, int* chosen) {
  const Timed timed(call.communicator.statistics(), Stage::exchange, "budget", 4 * call.count);
  return Chooser(call, rails, slice).run(in, chosen);
}

}  // namespace slimpi::algorithm
