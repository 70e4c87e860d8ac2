// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/bounded_exchange.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "algorithm/codec_choice.h"
#include "algorithm/node_frame.h"
#include "comm/call.h"
#include "comm/communicator.h"
#include "comm/kernel_result.h"
#include "comm/stream_wait.h"
#include "inter/schedule.h"
#include "intra/intra_node.h"

namespace slimpi::algorithm {

namespace {

constexpr int kMostTries = 3;  // exchanges per call; the last of them is exact
// The largest magnitude of a sum whose error can be bounded. A larger sum may saturate.
constexpr double kGreatestSum = 0x1p126;
constexpr std::uint64_t kPiece = 16384;  // the elements that the check encodes per step, about
constexpr std::uint64_t kLanes = 8;  // accumulators, so that no addition waits for another
// The relative error of a float addition. The factor 1.01 covers the second-order terms of the
// bound.
constexpr double kRounding = 1.01 * 0x1p-24;

// Returns the chunk of a member of the group, relative to the shard's first element.
comm::Range chunk_for(const comm::InterNodeGroup& group, const kernels::Format& format,
                      std::uint64_t shard, int member) {
  return comm::chunk_of(shard, int(group.peers.size()), member, comm::chunk_alignment(format));
}

// Returns how many elements of a chunk the check encodes per step: whole buckets, or the whole
// chunk if that is one bucket.
std::uint64_t check_piece(const kernels::Format& format, std::uint64_t chunk) {
  const std::uint64_t align = comm::chunk_alignment(format);
  if (comm::one_bucket(format)) return chunk;
  return std::min(chunk, align * std::max<std::uint64_t>(1, kPiece / align));
}

// The scratch memory of a call, large enough for every codec it may try.
struct Buffers {
  Buffers(const comm::Call& call, const comm::InterNodeGroup& group);
  Status reserve(const comm::Call& call) const;

  // The lengths of the arrays, in floats; that of `encoded` in bytes.
  std::uint64_t shard = 0, chunk = 0, piece = 0;
  std::size_t encoded_bytes = 0;
  float *kept = nullptr, *totals = nullptr;                     // in memory of the device
  float *in = nullptr, *own = nullptr, *host_totals = nullptr;  // host copies, with staging only
  float* decoded = nullptr;
  std::byte* encoded = nullptr;
};

Buffers::Buffers(const comm::Call& call, const comm::InterNodeGroup& group)
    : shard(own_shard(call).count) {
  if (group.shard_index < 0) return;
  for (int index = 0; index < kUncompressed; ++index) {
    const kernels::Format format = codec_at(call.plan.format, index);
    const std::uint64_t longest = chunk_for(group, format, shard, 0).count;
    chunk = std::max(chunk, longest);
    piece = std::max(piece, check_piece(format, longest));
    encoded_bytes = std::max<std::size_t>(
        encoded_bytes, kernels::encoded_bytes(format, check_piece(format, longest)));
  }
  kept = call.scratch.kept.floats();
  totals = kept + shard;
  decoded = call.scratch.check.floats();
  in = decoded + piece;
  own = in + (call.device.staged ? shard : 0);
  host_totals = own + (call.device.staged ? chunk : 0);
  encoded = reinterpret_cast<std::byte*>(host_totals + (call.device.staged ? chunk : 0));
}

Status Buffers::reserve(const comm::Call& call) const {
  const std::uint64_t copied = call.device.staged ? shard + 2 * chunk : 0;
  SLIMPI_TRY(
      call.reserve(call.scratch.kept, device::Place::device, (shard + chunk) * sizeof(float)));
  return call.reserve(call.scratch.check, device::Place::staging,
                      (piece + copied) * sizeof(float) + encoded_bytes);
}

// Returns the sum of the squares of a[i] - b[i].
double squared_distance(const float* a, const float* b, std::uint64_t count) {
  double sums[2];
  device::host().kernels()->compare(a, b, count, sums, nullptr);
  return sums[0];
}

double largest_difference(const float* a, const float* b, std::uint64_t count) {
  double largest[kLanes] = {};
  for (std::uint64_t i = 0; i < count; ++i)
    largest[i % kLanes] = std::max(largest[i % kLanes], std::fabs(double(a[i]) - double(b[i])));
  return *std::max_element(largest, largest + kLanes);
}

// The error tiles (values whose error is bounded together) of all shards, in order. Each rank fills
// in its own errors, in the tiles of its own shard only; gather() then adds those of all ranks.
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

  // Adds the errors of elements `first` to `first + count - 1` of the shard to their tiles: the
  // difference of `got`, the values as decoded, and `wanted`, the values before encoding.
  void add(std::uint64_t first, std::uint64_t count, const float* got, const float* wanted);

  // Sums the tiles, and the two numbers in `more`, over all ranks. Collective.
  Status gather(comm::Exchange& exchange, double (&more)[2]);
  double energy_bound() const {
    return error_energy_bound(tiles_, tiles_.get_allocator().resource());
  }

 private:
  const std::uint64_t length_, stream_;
  std::size_t first_ = 0;  // the first tile of this rank's shard
  // The field `norm` of each tile holds the squared norm until gather().
  std::pmr::vector<ErrorTile> tiles_;
};

void Tiles::add(std::uint64_t first, std::uint64_t count, const float* got, const float* wanted) {
  const std::uint64_t end = first + count;
  for (std::uint64_t begin = first; begin < end;) {
    const std::uint64_t number = begin / length_, tile_begin = number * length_;
    const std::uint64_t stop = std::min(end, tile_begin + length_);
    ErrorTile& tile = tiles_[first_ + number];
    const float *const a = got + (begin - first), *const b = wanted + (begin - first);
    tile.norm += squared_distance(a, b, stop - begin);
    tile.largest = std::max(tile.largest, largest_difference(a, b, stop - begin));
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

// Runs one call: repeats the exchange with ever finer codecs until the error is small enough.
class Bounded {
 public:
  // `rounding` bounds the L2 error of the float additions in this rank's share of the sum inside
  // the node.
  Bounded(comm::Call& call, const NodeShard& shard, double rounding)
      : call_(call),
        group_(shard.group),
        shard_(shard.range),
        in_(shard.in),
        out_(shard.out),
        rounding_(rounding),
        takes_part_(shard.owned()),
        buffers_(call, shard.group) {}

  Status run();

 private:
  Status keep_input();
  Status exchange();
  Status agree_on_first(CodecChoice& choice);
  void add_sent(const kernels::Format& format, comm::Range chunk, Tiles* tiles);
  Status measure(double* excess);
  Status check(int tries, int* next);
  // Sets *found to host memory that holds the `count` floats at `from`: `from` itself or, if the
  // device is staged, `copy`, which they are copied to.
  Status to_host(const float* from, std::uint64_t count, float* copy, const float** found) {
    *found = call_.device.staged ? copy : from;
    if (!call_.device.staged) return Status::ok;
    return comm::copy_and_wait(call_.device_stream(), "copy out", copy, from,
                               count * sizeof(float));
  }

  comm::Call& call_;
  const comm::InterNodeGroup& group_;
  const comm::Range shard_;
  const float* in_;  // in device memory; no exchange writes to it
  float* const out_;
  const double rounding_;
  const bool takes_part_;
  const Buffers buffers_;
  const float* host_in_ = nullptr;
  int index_ = kUncompressed;     // the codec of the current try
  int coarsest_ = kUncompressed;  // the coarsest codec that the measured error allows
  double peak_ = 0;               // no sum has a larger magnitude
};

// Keeps the input for a repeated exchange. An exchange overwrites the result buffer, so input that
// lies there is copied.
Status Bounded::keep_input() {
  if (!takes_part_) return Status::ok;
  if (in_ == out_) {
    call_.device.kernels()->sum(&in_, 1, shard_.count, buffers_.kept, call_.stream);
    in_ = buffers_.kept;
  }
  return to_host(in_, shard_.count, buffers_.in, &host_in_);
}

// Sets index_ to the codec of the first exchange:
//   the exact codec     if a value is infinite or a NaN or a sum may saturate, so the error is
//                       unknown, or if the chosen codec cannot hold the largest possible sum
//   the coarsest codec  if all values are zero, which no codec rounds
//   otherwise           the finest codec that some rank chose
Status Bounded::agree_on_first(CodecChoice& choice) {
  // Compares the bits of the magnitudes as integers: those of a NaN are above those of infinity,
  // which are above those of any finite value.
  std::uint32_t largest = 0;
  for (std::uint64_t i = 0; takes_part_ && i < shard_.count; ++i)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(host_in_[i]) & 0x7fffffffu);
  std::uint64_t words[] = {std::uint64_t(choice.first(call_.plan.max_error)), largest};
  SLIMPI_TRY(call_.communicator.exchange().all_max(words));
  const comm::Communicator& communicator = call_.communicator;
  const int addends = group_.flat ? communicator.size() : communicator.layout().nodes();
  peak_ = double(addends) * double(std::bit_cast<float>(std::uint32_t(words[1])));
  index_ = int(words[0]);
  if (peak_ == 0) index_ = 0;
  if (!(peak_ <= kGreatestSum) || !holds(index_, peak_)) index_ = kUncompressed;
  return Status::ok;
}

Status Bounded::exchange() {
  if (!takes_part_) return Status::ok;
  comm::Plan plan = call_.plan;
  plan.format = codec_at(plan.format, index_);
  comm::Call exchanged = comm::plain_call_with_plan(call_, plan);
  exchanged.totals = index_ == kUncompressed ? nullptr : buffers_.totals;
  return inter::run_exchange(exchanged, group_, shard_, in_, out_, nullptr);
}

// Adds to `tiles` the compression errors of what this rank sends to the owner of `chunk`.
void Bounded::add_sent(const kernels::Format& format, comm::Range chunk, Tiles* tiles) {
  const kernels::Kernels& kernels = *device::host().kernels();
  const std::uint64_t piece = check_piece(format, chunk.count);
  for (std::uint64_t done = 0; done < chunk.count; done += piece) {
    const comm::Range part{chunk.first + done, std::min(piece, chunk.count - done)};
    const float* const wanted = host_in_ + part.first;
    kernels.encode(format, inter::random_stream_for(call_, shard_, part), wanted, nullptr,
                   part.count, buffers_.encoded, nullptr);
    kernels.decode(format, buffers_.encoded, part.count, buffers_.decoded, nullptr);
    tiles->add(part.first, part.count, buffers_.decoded, wanted);
  }
}

// Sets *excess to the error bound divided by the allowed error, or to infinity if the error has no
// bound. The check passes if *excess is at most 1. Collective; the last bits of *excess may differ
// between ranks.
Status Bounded::measure(double* excess) {
  const Timed timed(call_.communicator.statistics(), Stage::encode, "check", 4 * shard_.count);
  Tiles tiles(call_, group_);
  double sums[2] = {0, rounding_};  // the result's squared norm, the bound of all rounding
  if (takes_part_) {
    const kernels::Format format = codec_at(call_.plan.format, index_);
    const int members = int(group_.peers.size());
    const comm::Range own = chunk_for(group_, format, shard_.count, group_.index);
    const float *out = nullptr, *totals = nullptr;
    SLIMPI_TRY(to_host(out_ + own.first, own.count, buffers_.own, &out));
    SLIMPI_TRY(to_host(buffers_.totals, own.count, buffers_.host_totals, &totals));
    for (int member = 0; member < members; ++member)
      if (member != group_.index)
        add_sent(format, chunk_for(group_, format, shard_.count, member), &tiles);
    tiles.add(own.first, own.count, out, totals);
    sums[0] = device::squared_norm(out, own.count);
    sums[1] +=
        double(members - 1) * kRounding * std::sqrt(device::squared_norm(host_in_, shard_.count));
  }
  SLIMPI_TRY(tiles.gather(call_.communicator.exchange(), sums));
  // sums[1] bounds the rounding errors of the additions, computed from the norms of the values
  // before encoding. But the owners add decoded values, whose norms may exceed those by the
  // encoding error. This raises the bound by a tiny fraction of that error (kRounding per
  // addition); the factor 1.0001 allows for it.
  const double error = (std::sqrt(tiles.energy_bound()) + sums[1]) * 1.0001;
  // max_error is relative to the norm of the exact sum. That norm is at least the norm of the
  // result minus the error.
  const double allowed = call_.plan.max_error / (1 + call_.plan.max_error) * std::sqrt(sums[0]);
  const bool bounded = allowed > 0 && std::isfinite(allowed) && !std::isnan(error);
  *excess = error == 0 ? 0 : bounded ? error / allowed : std::numeric_limits<double>::infinity();
  return Status::ok;
}

// Sets *next to the codec that all ranks try next, which is index_ if the error is small enough.
Status Bounded::check(int tries, int* next) {
  double excess = 0;
  const bool exact = index_ == kUncompressed;
  if (!exact) SLIMPI_TRY(measure(&excess));
  int best = next_codec(index_, excess, call_.plan.max_error, peak_);
  if (excess > 1 && tries == kMostTries - 1) best = kUncompressed;
  // The ranks may differ in the last bits of `excess`, so they agree on the finest codec that any
  // rank wants: once for repeating this sum, once for later sums of this size.
  std::uint64_t wanted[] = {std::uint64_t(excess > 1 ? best : index_), std::uint64_t(best)};
  if (!exact) SLIMPI_TRY(call_.communicator.exchange().all_max(wanted));
  *next = int(wanted[0]);
  coarsest_ = int(wanted[1]);
  return Status::ok;
}

Status Bounded::run() {
  SLIMPI_TRY(keep_input());
  CodecChoice& choice = call_.communicator.attachment<CodecChoices>().of(call_.count);
  SLIMPI_TRY(agree_on_first(choice));
  const int first = index_;
  for (int tries = 1;; ++tries) {
    SLIMPI_TRY(exchange());
    int next = index_;
    SLIMPI_TRY(check(tries, &next));
    if (next == index_) break;
    call_.communicator.statistics().count(&Counts::repeated);
    index_ = next;
  }
  // If agree_on_first() overruled `choice`, it did so because of these values (zeros, an infinity,
  // a NaN, or very large ones). They say nothing about the next values, so nothing is recorded.
  if (first == choice.first(call_.plan.max_error)) choice.passed(first, index_, coarsest_);
  call_.used_codec = comm::used_codec(codec_at(call_.plan.format, index_));
  return Status::ok;
}

using SquaredNorms = comm::KernelResult<double, 2>;  // the sums of kernels::Kernels::compare

// Sets *bound to this rank's share of the rounding error of the sum inside the node.
Status node_rounding(comm::Call& call, double* bound) {
  *bound = 0;
  if (!works_in_node(call) || call.count == 0) return Status::ok;
  SquaredNorms squares;
  SLIMPI_TRY(squares.open(call, call.location));
  call.device.kernels()->compare(call.in, call.in, call.count, squares.found(), call.stream);
  SLIMPI_TRY(squares.fetch(call.stream));
  SLIMPI_TRY(comm::synchronize(call.device_stream()));
  const std::size_t ranks = call.communicator.layout().node_ranks().size();
  *bound = double(ranks - 1) * kRounding * std::sqrt(squares.copy()[1]);
  return Status::ok;
}

}  // namespace

comm::Verdict run_bounded(comm::Call& call) {
  double rounding = 0;
  // The input must be read here, before the sum inside the node may overwrite it.
  SLIMPI_TRY(node_rounding(call, &rounding));
  return run_in_nodes(call,
                      [&](const NodeShard& shard) { return Bounded(call, shard, rounding).run(); });
}

Status reserve_bounded(const comm::Call& call) {
  SLIMPI_TRY(SquaredNorms::reserve(call, call.location));
  (void)call.communicator.attachment<CodecChoices>();
  const comm::InterNodeGroup& group = call.communicator.inter_node_group(call.plan.hierarchy);
  return group.shard_index < 0 ? Status::ok : Buffers(call, group).reserve(call);
}

}  // namespace slimpi::algorithm
