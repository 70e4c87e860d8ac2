// SPDX-License-Identifier: BSD-3-Clause
#include "inter/chunk_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory_resource>
#include <vector>

#include "inter/segment_length.h"

namespace slimpi::inter {

namespace {
// Whether the bits are those of an infinity or a NaN.
bool is_special(std::uint16_t bits, std::uint16_t infinity) {
  return (bits & 0x7fff) >= infinity;
}
}  // namespace

bool Overflow::is_infinite(const std::byte* payload, std::uint64_t i) const {
  std::uint16_t bits;
  std::memcpy(&bits, payload + 2 * i, sizeof bits);
  return (bits & 0x7fff) == infinity_;
}

// There is almost always none, so one fast pass over values that are still in the cache is enough.
bool Overflow::any(const std::byte* payload, std::uint64_t count) const {
  constexpr std::uint64_t kLanes = 32;
  std::uint16_t maxima[kLanes] = {};
  std::uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    std::uint16_t float16[kLanes];
    std::memcpy(float16, payload + 2 * i, sizeof float16);
    for (std::uint64_t at = 0; at < kLanes; ++at) {
      // Compares as signed integers: every vector unit can do that.
      const auto magnitude = std::int16_t(float16[at] & 0x7fff);
      const auto so_far = std::int16_t(maxima[at]);
      maxima[at] = std::uint16_t(magnitude > so_far ? magnitude : so_far);
    }
  }
  bool found = false;
  // NaN counts here, too, and only makes the slower search run: a NaN is no overflow.
  for (const std::uint16_t bits : maxima) found = found || is_special(bits, infinity_);
  for (; i < count; ++i) found = found || is_infinite(payload, i);
  return found;
}

void Overflow::encoded(const std::byte* payload, const float* from, std::uint64_t count) {
  if (infinity_ == 0 || !any(payload, count)) return;
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < count; ++i)
    // An infinity of the program is no overflow. Without `from` nothing is known about the values.
    found += is_infinite(payload, i) && (from == nullptr || std::isfinite(from[i]));
  statistics_.count(&Counts::overflowed, found);
}

void Overflow::keep(const float* own, std::uint64_t count, const kernels::Kernels& host) {
  own_.clear();
  if (infinity_ == 0) return;
  int found = 0;
  host.find_beyond(own, kernels::kMaxFloat, count, &found, nullptr);
  // Kept only where one is not finite, which is rare: the sum may overwrite them.
  if (found != 0) own_.assign(own, own + count);
}

void Overflow::summed(const std::byte* payload, std::span<const std::byte* const> addends,
                      std::uint64_t count) {
  if (infinity_ == 0 || !any(payload, count)) return;
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!is_infinite(payload, i) || (!own_.empty() && !std::isfinite(own_[i]))) continue;
    found += std::none_of(addends.begin(), addends.end(),
                          [&](const std::byte* addend) { return is_infinite(addend, i); });
  }
  statistics_.count(&Counts::overflowed, found);
}

namespace {

// A segment of a chunk that this rank owns. This rank is member `me` of `group_size`. All pointers
// are to memory of the context's device and to `count` elements.
struct Owned {
  int group_size, me;
  const float* in;  // this rank's own values, not encoded
  float* residual;  // what compression lost in earlier calls; updated; or null
  std::uint64_t count;
  std::byte* payload;  // gets the encoded sum
  float* out;          // gets what that decodes to; may be `in`
  float* total;        // gets the sum before it is encoded, or null
};

// Adds in groups of as many members as a kernel takes. The last group writes `payload` and
// `result`.
void add_up(const Context& context, const kernels::RandomStream& random, const Owned& owned,
            const ChunkCodec::PayloadFrom& encoded, float* residual, std::byte* payload,
            float* result) {
  // The sum of the groups before, in fp32. `partial` is scratch of the exchange.
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

// The local reduction: adds the members' values in rank order, this rank's own as they are and the
// others' decoded from encoded(member), and encodes the sum. If there are more members than one
// kernel can add, the context's `partial` holds owned.count floats between kernels. Only queues
// work on the compute stream.
void reduce_at_owner(const Context& context, const kernels::RandomStream& random,
                     const Owned& owned, const ChunkCodec::PayloadFrom& encoded) {
  // The uncompressed total comes first, because owned.out may be owned.in.
  if (owned.total != nullptr)
    add_up(context, random, owned, encoded, nullptr, nullptr, owned.total);
  add_up(context, random, owned, encoded, owned.residual, owned.payload, owned.out);
}

}  // namespace

ChunkCodec::ChunkCodec(const Context& context, const comm::InterNodeGroup& group, comm::Range shard,
                       const float* in, float* out, float* residual)
    : context_(context),
      group_(group),
      shard_(shard),
      in_(in),
      out_(out),
      residual_(residual),
      own_first_(comm::chunk_of(shard.count, int(group.peers.size()), group.index,
                                comm::chunk_alignment(context.format))
                     .first),
      overflow_(context.format.codec, context.statistics, context.memory) {}

void ChunkCodec::encode(const comm::Range& part, std::byte* payload) {
  // On a staged device this is the time to queue the kernel; the trace has the device's own
  // interval.
  const Timed timed(context_.statistics, Stage::encode, "encode", 4 * part.count);
  // The kernel also updates the residual: what is added to the values, and what is lost again.
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
  // The host cannot read the values of a staged device here, so all of them count as finite there.
  if (!context_.device.staged) overflow_.keep(in_ + part.first, part.count, context_.kernels);
  float* const total =
      context_.totals == nullptr ? nullptr : context_.totals + (part.first - own_first_);
  // `out` may be `in`: the sum of an element is written after its addends were read.
  const Owned owned{int(group_.peers.size()), group_.index, in_ + part.first,
                    residual(part),           part.count,   payload,
                    out_ + part.first,        total};
  reduce_at_owner(context_, random_stream_for(context_, shard_, part), owned, from);
}

void ChunkCodec::encoded(const comm::Range& part, const std::byte* payload) {
  overflow_.encoded(payload, context_.device.staged ? nullptr : in_ + part.first, part.count);
}

void ChunkCodec::summed(const comm::Range& part, const std::byte* payload,
                        const PayloadFrom& from) {
  // Their order does not matter here: any infinite addend explains an infinite sum.
  if (!overflow_.counts()) return;
  std::pmr::vector<const std::byte*> addends(context_.memory);
  for (int member = 0; member < int(group_.peers.size()); ++member)
    if (member != group_.index) addends.push_back(from(member));
  overflow_.summed(payload, addends, part.count);
}

}  // namespace slimpi::inter
