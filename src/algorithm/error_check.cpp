// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/error_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "algorithm/communicator.h"
#include "algorithm/node_sum.h"
#include "algorithm/piece.h"
#include "algorithm/segments.h"

namespace slimpi::algorithm {

namespace {

constexpr std::uint64_t kPiece = 16384;  // elements
constexpr std::uint64_t kLanes = 8;      // accumulators, so that loops over them vectorize
// Relative error of an addition in float; the little more covers what its bound neglects.
constexpr double kRounding = 1.01 * 0x1p-24;

double energy_of(const float* values, std::uint64_t count) {
  double squares[kLanes] = {}, sum = 0;
  std::uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::uint64_t lane = 0; lane < kLanes; ++lane)
      squares[lane] += double(values[i + lane]) * double(values[i + lane]);
  for (; i < count; ++i) sum += double(values[i]) * double(values[i]);
  for (const double square : squares) sum += square;
  return sum;
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

// The tiles of all rails, one rail's after the other's; of this rank's, what it knows of its own
// errors.
class Tiles {
 public:
  Tiles(const Call& call, const Rails& rails)
      : length_(check_tile_elements(call.count)),
        stream_(call.communicator.config().seed * 0xd1342543de82ef95ull + call.number) {
    for (int rail = 0; rail < rails.rails; ++rail) {
      if (rail == rails.rail) first_ = tiles_.size();
      const std::uint64_t count = slice_of(call.count, call.plan.format, rails, rail).count;
      for (std::uint64_t begin = 0; begin < count; begin += length_)
        tiles_.push_back({.count = std::min(length_, count - begin)});
    }
  }

  // This rank's slice has `got` where it should have `wanted`, from element `first` on.
  void add(std::uint64_t first, std::uint64_t count, const float* got, const float* wanted);

  // Puts together what all ranks know, and two numbers more. Collective.
  Status gather(Exchange& exchange, double (&more)[2]);
  double energy_bound() const { return error_energy_bound(tiles_); }

 private:
  const std::uint64_t length_, stream_;
  std::size_t first_ = 0;  // tile of this rank's slice
  // `norm` is a squared norm until it is gathered.
  std::vector<ErrorTile> tiles_;
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

Status Tiles::gather(Exchange& exchange, double (&more)[2]) {
  std::vector<double> values(std::begin(more), std::end(more));
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

// What this rank's messages to the owner of `chunk` lost.
void add_sent(const Call& call, const kernels::Format& format, Range slice, Range chunk,
              const Checked& checked, Tiles* tiles) {
  const kernels::Kernels& kernels = *device::host().kernels();
  const std::uint64_t piece = check_piece(format, chunk.count);
  for (std::uint64_t done = 0; done < chunk.count; done += piece) {
    const Range part{chunk.first + done, std::min(piece, chunk.count - done)};
    const float* const wanted = checked.in + part.first;
    kernels.encode(format, draw_for(call, slice, part), wanted, nullptr, part.count,
                   checked.encoded, nullptr);
    kernels.decode(format, checked.encoded, part.count, checked.decoded, nullptr);
    tiles->add(part.first, part.count, checked.decoded, wanted);
  }
}

}  // namespace

std::uint64_t check_piece(const kernels::Format& format, std::uint64_t chunk) {
  const std::uint64_t align = chunk_alignment(format);
  if (format.coding == kernels::Coding::quantized && format.bucket == 0) return chunk;
  return std::min(chunk, align * std::max<std::uint64_t>(1, kPiece / align));
}

Status node_rounding(Call& call, double* bound) {
  Communicator& communicator = call.communicator;
  const std::size_t ranks = communicator.layout().neighbours().size();
  *bound = 0;
  if (ranks == 1 || call.count == 0) return Status::ok;
  SLIMPI_TRY(communicator.scratch().found.reserve(call.device, call.out, device::Place::device,
                                                  2 * sizeof(double), communicator.statistics()));
  double squares[2] = {};
  auto* const result = reinterpret_cast<double*>(communicator.scratch().found.data());
  call.device.kernels()->compare(call.in, call.in, call.count, result, call.stream);
  SLIMPI_TRY(call.device.copy(squares, result, sizeof squares, call.stream));
  SLIMPI_TRY(wait_for_stream(call.device, call.stream));
  *bound = double(ranks - 1) * kRounding * std::sqrt(squares[1]);
  return Status::ok;
}

Status measure_excess(Call& call, const kernels::Format& format, const Rails& rails, Range slice,
                      const Checked& checked, double node_rounding, double* excess) {
  const Timed timed(call.communicator.statistics(), Stage::encode, "check", 4 * slice.count);
  Tiles tiles(call, rails);
  double sums[2] = {0, node_rounding};  // the result's squared norm, the bound of all rounding
  if (rails.rail >= 0) {
    const int members = int(rails.peers.size());
    const auto chunk_of = [&](int member) {
      return part_of(slice.count, members, member, chunk_alignment(format));
    };
    const Range own = chunk_of(rails.index);
    for (int member = 0; member < members; ++member)
      if (member != rails.index) add_sent(call, format, slice, chunk_of(member), checked, &tiles);
    tiles.add(own.first, own.count, checked.out, checked.totals);
    sums[0] = energy_of(checked.out, own.count);
    sums[1] += double(members - 1) * kRounding * std::sqrt(energy_of(checked.in, slice.count));
  }
  SLIMPI_TRY(tiles.gather(call.communicator.exchange(), sums));
  // The owners add what was decoded, which may be larger than what was encoded by the error.
  const double energy = tiles.energy_bound();
  const double error = (std::sqrt(energy) + sums[1]) * 1.0001;
  // The exact sum may be smaller than the result by the error.
  const double allowed = call.plan.max_error / (1 + call.plan.max_error) * std::sqrt(sums[0]);
  const double infinite = std::numeric_limits<double>::infinity();
  *excess = error == 0 ? 0 : allowed > 0 && std::isfinite(allowed) ? error / allowed : infinite;
  if (std::isnan(*excess)) *excess = infinite;
  return Status::ok;
}

}  // namespace slimpi::algorithm
