// SPDX-License-Identifier: BSD-3-Clause
#include "inter/chunk_reduction.h"

#include <algorithm>
#include <cstring>

namespace slimpi::inter {

namespace {

// A segment of the chunk that this rank owns. This rank is member `me` of `group_size` members. All
// pointers point to `count` elements in memory of the context's device.
struct Owned {
  int group_size, me;
  const float* in;  // this rank's own values, not encoded
  float* residual;  // the values that compression lost in earlier calls; updated; or null
  std::uint64_t count;
  std::byte* payload;  // gets the encoded sum
  float* out;          // gets the decoded payload; may be `in`
  float* total;        // gets the sum before it is encoded, or null
};

// Adds the members in groups, each as large as a kernel takes. The last group writes `payload` and
// `result`.
void add_up(const Context& context, const kernels::RandomStream& random, const Owned& owned,
            const ChunkCodec::PayloadFrom& encoded, float* residual, std::byte* payload,
            float* result) {
  // The sum of the earlier groups, in fp32, in `partial`, which is scratch memory of the exchange.
  const float* carry = nullptr;
  for (int first = 0; first < owned.group_size; first += kernels::kMaxAddends) {
    const int last = std::min(owned.group_size, first + kernels::kMaxAddends);
    kernels::Addend addends[kernels::kMaxAddends] = {};
    for (int member = first; member < last; ++member) {
      kernels::Addend& addend = addends[member - first];
      if (member == owned.me)
        // The owner's values are never encoded before they are added.
        addend.exact = owned.in;
      else
        addend.encoded = encoded(member);
    }
    const bool end = last == owned.group_size;
    context.kernels.sum_encode(context.format, random, addends, last - first, carry,
                               end ? residual : nullptr, owned.count, end ? payload : nullptr,
                               end ? result : context.partial, context.stream());
    carry = context.partial;
  }
}

// Does the local reduction: adds the members' values in rank order and encodes the sum. This rank's
// values are not encoded; those of another member are decoded from encoded(member). If there are
// more members than one kernel adds, the context's `partial` holds owned.count floats between
// kernels. Only queues work on the compute stream.
void reduce_at_owner(const Context& context, const kernels::RandomStream& random,
                     const Owned& owned, const ChunkCodec::PayloadFrom& encoded) {
  // Computes the uncompressed total first, because owned.out may be owned.in.
  if (owned.total != nullptr)
    add_up(context, random, owned, encoded, nullptr, nullptr, owned.total);
  add_up(context, random, owned, encoded, owned.residual, owned.payload, owned.out);
}

}  // namespace

ChunkCodec::ChunkCodec(const Context& context, const comm::InterNodeGroup& group, comm::Range shard,
                       std::uint64_t own_first, const float* in, float* out, float* residual)
    : context_(context),
      group_(group),
      shard_(shard),
      in_(in),
      out_(out),
      residual_(residual),
      own_first_(own_first) {}

void ChunkCodec::encode(const comm::Range& part, std::byte* payload) {
  // On a staged device this is the time to queue the kernel; the trace has the device's own
  // interval.
  const Timed timed(context_.statistics, Stage::encode, "encode", 4 * part.count);
  // The kernel also adds the clamped residual to the values, and stores the new residual.
  context_.kernels.encode(context_.format, random_stream_for(context_, shard_, part),
                          in_ + part.first, residual(part), part.count, payload, context_.stream());
}

void ChunkCodec::decode(const comm::Range& part, const std::byte* payload) {
  const Timed timed(context_.statistics, Stage::decode, "decode", 4 * part.count);
  context_.kernels.decode(context_.format, payload, part.count, out_ + part.first,
                          context_.stream());
}

void ChunkCodec::sum(const comm::Range& part, std::byte* payload, const PayloadFrom& from) {
  const Timed timed(context_.statistics, Stage::decode, "sum", 4 * part.count);
  float* const total =
      context_.totals == nullptr ? nullptr : context_.totals + (part.first - own_first_);
  // `out` may be `in`: the sum of an element is written after its addends were read.
  const Owned owned{int(group_.peers.size()), group_.index, in_ + part.first,
                    residual(part),           part.count,   payload,
                    out_ + part.first,        total};
  reduce_at_owner(context_, random_stream_for(context_, shard_, part), owned, from);
}

void ChunkCodec::total(const comm::Range& part, const PayloadFrom& from) {
  const Timed timed(context_.statistics, Stage::decode, "sum", 4 * part.count);
  float* const total = context_.totals + (part.first - own_first_);
  const Owned owned{int(group_.peers.size()),
                    group_.index,
                    in_ + part.first,
                    nullptr,
                    part.count,
                    nullptr,
                    nullptr,
                    total};
  add_up(context_, random_stream_for(context_, shard_, part), owned, from, nullptr, nullptr, total);
}

void ChunkCodec::count_infinities(const std::byte* payload, std::uint64_t count) {
  const std::uint16_t infinity = kernels::row_of(context_.format.codec).infinity;
  if (infinity == 0) return;
  constexpr std::uint64_t kBlock = 1024;  // a length that compilers make vectors of
  std::uint64_t found = 0;
  for (std::uint64_t first = 0; first < count; first += kBlock) {
    std::uint16_t values[kBlock] = {}, infinite = 0;
    std::memcpy(values, payload + 2 * first, 2 * std::min(kBlock, count - first));
    for (const std::uint16_t bits : values) infinite += (bits & 0x7fff) == infinity ? 1 : 0;
    found += infinite;
  }
  context_.statistics.count(&Counts::overflowed, found);
}

}  // namespace slimpi::inter
