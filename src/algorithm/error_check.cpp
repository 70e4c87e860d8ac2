// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/error_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/hash.h"
#include "comm/communicator.h"
#include "comm/stream_wait.h"
#include "inter/context.h"
#include "intra/intra_node.h"

namespace slimpi::algorithm {

namespace {

constexpr std::uint64_t kFewestElements = 1024, kMostTiles = 2048;

// ln(2 / p), where p is kMissProbability divided by the number of bounds used together.
double log_of_chance(std::size_t bounds) {
  return std::log(2 * double(bounds) / kMissProbability);
}

double square(double x) {
  return x * x;
}

double triangle_of(std::span<const ErrorTile* const> tiles) {
  double energy = 0;
  for (const ErrorTile* const tile : tiles) energy += square(tile->norm);
  return energy;
}

// Each drawn element gives a number between 0 and 1. The mean of this number over the draw is the
// squared error of its tile divided by `most`, which no tile exceeds.
double sampled_energy(std::span<const ErrorTile* const> tiles, double log_chance) {
  double largest = 0;
  std::uint64_t count = 0;
  for (const ErrorTile* const tile : tiles) {
    largest = std::max(largest, tile->largest);
    count = std::max(count, tile->count);
  }
  const double most = double(count) * square(largest);
  const double draws = double(tiles.size()) * kPlaces;
  if (most == 0) return 0;
  double sum = 0, squares = 0;
  for (const ErrorTile* const tile : tiles)
    for (const double error : tile->at) {
      const double share = std::min(1.0, double(tile->count) * square(error) / most);
      sum += share;
      squares += square(share);
    }
  const double mean = sum / draws;
  const double variance = std::max(0.0, (squares - sum * mean) / (draws - 1));
  const double upper =
      mean + std::sqrt(2 * variance * log_chance / draws) + 7 * log_chance / (3 * (draws - 1));
  return upper * most * double(tiles.size());
}

}  // namespace

double error_energy_bound(std::span<const ErrorTile> tiles, std::pmr::memory_resource* memory) {
  // Tiles whose largest errors are of the same magnitude share one sample. In one sample of all
  // tiles, the largest error of all would make the bound of the other tiles useless.
  std::pmr::map<int, std::pmr::vector<const ErrorTile*>> classes(memory);
  std::pmr::vector<const ErrorTile*> all(memory);
  for (const ErrorTile& tile : tiles) {
    if (!std::isfinite(tile.norm) || !std::isfinite(tile.largest))
      return std::numeric_limits<double>::infinity();
    if (tile.norm == 0) continue;
    classes[std::ilogb(tile.largest)].push_back(&tile);
    all.push_back(&tile);
  }
  if (all.empty()) return 0;
  const double log_chance = log_of_chance(classes.size() + 1);
  double energy = 0;
  for (const auto& [exponent, of_class] : classes)
    energy += std::min(triangle_of(of_class), sampled_energy(of_class, log_chance));
  return std::min(energy, sampled_energy(all, log_chance));
}

std::uint64_t check_tile_elements(std::uint64_t count) {
  return std::max(kFewestElements, (count + kMostTiles - 1) / kMostTiles);
}

std::uint64_t place_in(std::uint64_t stream, std::uint64_t tile, int place, std::uint64_t count) {
  return (splitmix64(stream, tile * kPlaces + std::uint64_t(place)) >> 11) % count;
}

namespace {

constexpr std::uint64_t kPiece = 16384;  // elements
constexpr std::uint64_t kLanes = 8;      // accumulators, so that loops over them vectorize
// Relative error of a float addition. The factor 1.01 covers second-order terms of the bound.
constexpr double kRounding = 1.01 * 0x1p-24;

double energy_of(const float* values, std::uint64_t count) {
  double squares[2] = {};  // of the difference, here with itself, and of the values
  device::host().kernels()->compare(values, values, count, squares, nullptr);
  return squares[1];
}

struct Difference {
  double energy = 0, largest = 0;
};

Difference difference_of(const float* a, const float* b, std::uint64_t count) {
  double squares[kLanes] = {}, largest[kLanes] = {};
  Difference found;
  const auto add = [](double difference, double& energy, double& most) {
    energy += difference * difference;
    most = std::fabs(difference) > most ? std::fabs(difference) : most;
  };
  std::uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::uint64_t lane = 0; lane < kLanes; ++lane)
      add(double(a[i + lane]) - double(b[i + lane]), squares[lane], largest[lane]);
  for (; i < count; ++i) add(double(a[i]) - double(b[i]), found.energy, found.largest);
  for (std::uint64_t lane = 0; lane < kLanes; ++lane) {
    found.energy += squares[lane];
    found.largest = std::max(found.largest, largest[lane]);
  }
  return found;
}

// The tiles of all shards, in the order of the shards. Before gather(), this rank fills in its own
// errors, in the tiles of its own shard only.
class Tiles {
 public:
  Tiles(const comm::Call& call, const comm::InterNodeGroup& group)
      : length_(check_tile_elements(call.count)),
        stream_(call.communicator.config().seed * 0xd1342543de82ef95ull + call.number),
        tiles_(&call.scratch.objects) {
    for (int shard_index = 0; shard_index < group.shards; ++shard_index) {
      if (shard_index == group.shard_index) first_ = tiles_.size();
      const std::uint64_t count =
          intra::shard_range(call.count, call.plan.format, group, shard_index).count;
      for (std::uint64_t begin = 0; begin < count; begin += length_)
        tiles_.push_back({.count = std::min(length_, count - begin)});
    }
  }

  // Adds the errors of `count` values: `got` instead of `wanted`, from element `first` of the
  // shard.
  void add(std::uint64_t first, std::uint64_t count, const float* got, const float* wanted);

  // Sums the tiles and the two numbers in `more` over all ranks. Collective.
  Status gather(comm::Exchange& exchange, double (&more)[2]);
  double energy_bound() const {
    return error_energy_bound(tiles_, tiles_.get_allocator().resource());
  }

 private:
  const std::uint64_t length_, stream_;
  std::size_t first_ = 0;  // index of the first tile of this rank's shard
  // Before gather(), `norm` holds the squared norm.
  std::pmr::vector<ErrorTile> tiles_;
};

void Tiles::add(std::uint64_t first, std::uint64_t count, const float* got, const float* wanted) {
  const std::uint64_t end = first + count;
  for (std::uint64_t begin = first; begin < end;) {
    const std::uint64_t number = begin / length_, tile_begin = number * length_;
    const std::uint64_t stop = std::min(end, tile_begin + length_);
    ErrorTile& tile = tiles_[first_ + number];
    const Difference found =
        difference_of(got + (begin - first), wanted + (begin - first), stop - begin);
    tile.norm += found.energy;
    tile.largest = std::max(tile.largest, found.largest);
    for (int place = 0; place < kPlaces; ++place) {
      const std::uint64_t at = tile_begin + place_in(stream_, first_ + number, place, tile.count);
      if (at >= begin && at < stop)
        tile.at[place] = double(got[at - first]) - double(wanted[at - first]);
    }
    begin = stop;
  }
}

Status Tiles::gather(comm::Exchange& exchange, double (&more)[2]) {
  std::pmr::vector<double> values(std::begin(more), std::end(more), tiles_.get_allocator());
  values.reserve(std::size(more) + tiles_.size() * (2 + kPlaces));
  for (const ErrorTile& tile : tiles_) {
    values.insert(values.end(), {std::sqrt(tile.norm), tile.largest});
    values.insert(values.end(), std::begin(tile.at), std::end(tile.at));
  }
  SLIMPI_TRY(exchange.all_sum(values));
  const double* next = values.data();
  for (double& value : more) value = *next++;
  for (ErrorTile& tile : tiles_) {
    tile.norm = *next++;
    tile.largest = *next++;
    for (double& error : tile.at) error = *next++;
  }
  return Status::ok;
}

// Adds the compression errors of this rank's messages to the owner of `chunk`.
void add_sent(const comm::Call& call, const kernels::Format& format, comm::Range shard,
              comm::Range chunk, const Checked& checked, Tiles* tiles) {
  const kernels::Kernels& kernels = *device::host().kernels();
  const std::uint64_t piece = check_piece(format, chunk.count);
  for (std::uint64_t done = 0; done < chunk.count; done += piece) {
    const comm::Range part{chunk.first + done, std::min(piece, chunk.count - done)};
    const float* const wanted = checked.in + part.first;
    kernels.encode(format, inter::random_stream_for(call, shard, part), wanted, nullptr, part.count,
                   checked.encoded, nullptr);
    kernels.decode(format, checked.encoded, part.count, checked.decoded, nullptr);
    tiles->add(part.first, part.count, checked.decoded, wanted);
  }
}

}  // namespace

std::uint64_t check_piece(const kernels::Format& format, std::uint64_t chunk) {
  const std::uint64_t align = comm::chunk_alignment(format);
  if (comm::one_bucket(format)) return chunk;
  return std::min(chunk, align * std::max<std::uint64_t>(1, kPiece / align));
}

Status node_rounding(comm::Call& call, double* bound) {
  comm::Communicator& communicator = call.communicator;
  const std::size_t ranks = communicator.layout().node_ranks().size();
  *bound = 0;
  if (ranks == 1 || call.count == 0) return Status::ok;
  SquaredNorms squares;
  SLIMPI_TRY(squares.open(call, call.location));
  call.device.kernels()->compare(call.in, call.in, call.count, squares.found(), call.stream);
  SLIMPI_TRY(squares.fetch(call.stream));
  SLIMPI_TRY(comm::synchronize(call.device_stream()));
  *bound = double(ranks - 1) * kRounding * std::sqrt(squares.copy()[1]);
  return Status::ok;
}

Status measure_excess(comm::Call& call, const kernels::Format& format,
                      const comm::InterNodeGroup& group, comm::Range shard, const Checked& checked,
                      double node_rounding, double* excess) {
  const Timed timed(call.communicator.statistics(), Stage::encode, "check", 4 * shard.count);
  Tiles tiles(call, group);
  double sums[2] = {0, node_rounding};  // the result's squared norm, the bound of all rounding
  if (group.shard_index >= 0) {
    const int group_size = int(group.peers.size());
    const auto chunk_for = [&](int member) {
      return comm::chunk_of(shard.count, group_size, member, comm::chunk_alignment(format));
    };
    const comm::Range own = chunk_for(group.index);
    for (int member = 0; member < group_size; ++member)
      if (member != group.index) add_sent(call, format, shard, chunk_for(member), checked, &tiles);
    tiles.add(own.first, own.count, checked.out, checked.totals);
    sums[0] = energy_of(checked.out, own.count);
    sums[1] += double(group_size - 1) * kRounding * std::sqrt(energy_of(checked.in, shard.count));
  }
  SLIMPI_TRY(tiles.gather(call.communicator.exchange(), sums));
  // The owners add decoded values, whose norm may exceed that of the encoded values by the error.
  // The factor covers the rounding of this larger sum.
  const double energy = tiles.energy_bound();
  const double error = (std::sqrt(energy) + sums[1]) * 1.0001;
  // max_error is relative to the exact sum, whose norm may be smaller than that of the result by
  // the error.
  const double allowed = call.plan.max_error / (1 + call.plan.max_error) * std::sqrt(sums[0]);
  const double infinite = std::numeric_limits<double>::infinity();
  *excess = error == 0 ? 0 : allowed > 0 && std::isfinite(allowed) ? error / allowed : infinite;
  if (std::isnan(*excess)) *excess = infinite;
  return Status::ok;
}

}  // namespace slimpi::algorithm
