// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/bounded_exchange.h"

#include <algorithm>
#include <bit>

#include "algorithm/codec_choice.h"
#include "algorithm/error_check.h"
#include "comm/communicator.h"
#include "comm/stream_wait.h"
#include "comm/used_codec.h"
#include "inter/schedule.h"
#include "intra/intra_node.h"

namespace slimpi::algorithm {

namespace {

constexpr int kMostTries = 3;  // exchanges in one call; the last one is exact
// Larger sums may saturate, and the error of a saturated sum has no bound.
constexpr double kGreatestSum = 0x1p126;

// The memory of one call: views of scratch that reserve_bounded() reserved.
struct Buffers {
  float *kept = nullptr, *totals = nullptr;                     // in device memory
  float *in = nullptr, *own = nullptr, *host_totals = nullptr;  // host copies, with staging only
  float* decoded = nullptr;
  std::byte* encoded = nullptr;
};

struct Sizes {
  std::uint64_t shard = 0, chunk = 0, piece = 0;  // floats
  std::size_t encoded = 0;                        // bytes
};

Sizes sizes_for(const kernels::Format& format, const comm::InterNodeGroup& group,
                std::uint64_t shard) {
  Sizes sizes;
  sizes.shard = shard;
  for (int index = 0; index < kUncompressed; ++index) {
    const kernels::Format tried = codec_at(format, index);
    const std::uint64_t chunk =
        comm::chunk_of(shard, int(group.peers.size()), 0, comm::chunk_alignment(tried)).count;
    const std::uint64_t piece = check_piece(tried, chunk);
    sizes.chunk = std::max(sizes.chunk, chunk);
    sizes.piece = std::max(sizes.piece, piece);
    sizes.encoded = std::max(sizes.encoded, std::size_t(kernels::encoded_bytes(tried, piece)));
  }
  return sizes;
}

Buffers buffers_of(const comm::Call& call, const Sizes& sizes) {
  Buffers buffers;
  buffers.kept = reinterpret_cast<float*>(call.scratch.kept.data());
  buffers.totals = buffers.kept + sizes.shard;
  float* next = reinterpret_cast<float*>(call.scratch.check.data());
  const auto take = [&](std::uint64_t count) {
    float* const taken = next;
    next += count;
    return taken;
  };
  buffers.decoded = take(sizes.piece);
  if (call.device.staged) {
    buffers.in = take(sizes.shard);
    buffers.own = take(sizes.chunk);
    buffers.host_totals = take(sizes.chunk);
  }
  buffers.encoded = reinterpret_cast<std::byte*>(next);
  return buffers;
}

// The largest absolute value of float bits: of a NaN above infinity's, and of that above all
// others'.
std::uint32_t largest_bits(const float* values, std::uint64_t count) {
  std::uint32_t largest = 0;
  for (std::uint64_t i = 0; i < count; ++i)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffffu);
  return largest;
}

// One call: exchanges with finer and finer codecs until the error is small enough.
class Bounded {
 public:
  Bounded(comm::Call& call, const comm::InterNodeGroup& group, comm::Range shard, const float* in,
          double node_rounding)
      : call_(call),
        group_(group),
        shard_(shard),
        in_(in),
        out_(call.out + shard.first),
        node_rounding_(node_rounding),
        takes_part_(group.shard_index >= 0),
        staged_(call.device.staged) {}

  Status run();

 private:
  Status keep_input();
  Status exchange();
  Status agree_on_first(CodecChoice& choice);
  Status check(int tries, int* next);
  Status to_host(float* to, const float* from, std::uint64_t count) {
    return comm::copy_and_wait(call_.device_stream(), "copy out", to, from, count * sizeof(float));
  }

  comm::Call& call_;
  const comm::InterNodeGroup& group_;
  const comm::Range shard_;
  const float* in_;  // in device memory; no exchange writes to it
  float* const out_;
  const double node_rounding_;
  const bool takes_part_, staged_;
  const float* host_in_ = nullptr;
  Buffers buffers_;
  int index_ = kUncompressed;     // the codec of the present try
  int coarsest_ = kUncompressed;  // the coarsest that the error allows
  double peak_ = 0;               // no sum has a larger absolute value
};

// Another exchange may follow with the same input, so no exchange may overwrite it. If the input
// lies in the result buffer, this makes a copy.
Status Bounded::keep_input() {
  if (!takes_part_) return Status::ok;
  buffers_ = buffers_of(call_, sizes_for(call_.plan.format, group_, shard_.count));
  if (in_ == out_) {
    call_.device.kernels()->sum(&in_, 1, shard_.count, buffers_.kept, call_.stream);
    in_ = buffers_.kept;
  }
  host_in_ = staged_ ? buffers_.in : in_;
  return staged_ ? to_host(buffers_.in, in_, shard_.count) : Status::ok;
}

// The codec to start with: the finest that some rank chose. With an infinity or a NaN, or with sums
// that may saturate, the error is unknown, so the codec is the exact one. Zeros need no levels.
Status Bounded::agree_on_first(CodecChoice& choice) {
  const std::uint32_t largest = takes_part_ ? largest_bits(host_in_, shard_.count) : 0;
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
  comm::Call exchanged = comm::with_plan(call_, plan);
  exchanged.totals = index_ == kUncompressed ? nullptr : buffers_.totals;
  return inter::run_exchange(exchanged, group_, shard_, in_, out_, nullptr);
}

// Sets *next to the codec that all ranks try next, or to index_ if the error is small enough.
Status Bounded::check(int tries, int* next) {
  const double max_error = call_.plan.max_error;
  if (index_ == kUncompressed) {
    coarsest_ = coarsest_codec(index_, 0, max_error, peak_);
    return Status::ok;
  }
  const kernels::Format format = codec_at(call_.plan.format, index_);
  Checked checked;
  if (takes_part_) {
    const comm::Range own = comm::chunk_of(shard_.count, int(group_.peers.size()), group_.index,
                                           comm::chunk_alignment(format));
    checked = {host_in_, out_ + own.first, buffers_.totals, buffers_.decoded, buffers_.encoded};
    if (staged_) {
      SLIMPI_TRY(to_host(buffers_.own, out_ + own.first, own.count));
      SLIMPI_TRY(to_host(buffers_.host_totals, buffers_.totals, own.count));
      checked.out = buffers_.own;
      checked.totals = buffers_.host_totals;
    }
  }
  double excess = 0;
  SLIMPI_TRY(measure_excess(call_, format, group_, shard_, checked, node_rounding_, &excess));
  // `excess` may differ between ranks in its last bits, so the ranks agree on the finest codecs
  // that any of them wants.
  std::uint64_t wanted[] = {std::uint64_t(index_), std::uint64_t(index_)};
  if (excess <= 1)
    wanted[1] = std::uint64_t(coarsest_codec(index_, excess, max_error, peak_));
  else
    wanted[0] = std::uint64_t(tries < kMostTries - 1 ? finer_codec(index_, excess, max_error, peak_)
                                                     : kUncompressed);
  SLIMPI_TRY(call_.communicator.exchange().all_max(wanted));
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
  // What these values alone decided says nothing about the next ones.
  if (first == choice.first(call_.plan.max_error)) choice.passed(first, index_, coarsest_);
  call_.used_codec = comm::used_codec(codec_at(call_.plan.format, index_));
  return Status::ok;
}

}  // namespace

Status run_bounded(comm::Call& call, const comm::InterNodeGroup& group, comm::Range shard,
                   const float* in, double node_rounding) {
  return Bounded(call, group, shard, in, node_rounding).run();
}

Status reserve_bounded(const comm::Call& call) {
  const comm::Plan& plan = call.plan;
  Statistics& statistics = call.communicator.statistics();
  SLIMPI_TRY(SquaredNorms::reserve(call, call.location));
  (void)call.communicator.attachment<CodecChoices>();
  const comm::InterNodeGroup& group = call.communicator.inter_node_group(plan.hierarchy);
  if (group.shard_index < 0) return Status::ok;
  const Sizes sizes =
      sizes_for(plan.format, group,
                intra::shard_range(call.count, plan.format, group, group.shard_index).count);
  const std::uint64_t on_device = sizes.shard + sizes.chunk;
  std::uint64_t on_host = sizes.piece;
  if (call.device.staged) on_host += sizes.shard + 2 * sizes.chunk;
  SLIMPI_TRY(call.scratch.kept.reserve(call.location, device::Place::device,
                                       on_device * sizeof(float), statistics));
  return call.scratch.check.reserve(call.location, device::Place::staging,
                                    on_host * sizeof(float) + sizes.encoded, statistics);
}

}  // namespace slimpi::algorithm
