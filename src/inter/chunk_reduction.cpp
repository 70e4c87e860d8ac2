// SPDX-License-Identifier: BSD-3-Clause
#include "inter/chunk_reduction.h"

#include <algorithm>
#include <cstring>

namespace slimpi::inter {

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
  // On a GPU, `timed` measures only how long it takes to queue the kernel. The trace shows the work
  // of the device in a row of its own.
  const Timed timed(context_.statistics, Stage::encode, "encode", 4 * part.count);
  // The kernel also adds a limited part of the residual (what earlier calls lost) to the values,
  // and stores the new residual.
  context_.kernels.encode(context_.format, random_stream_for(context_, shard_, part),
                          in_ + part.first, residual(part), part.count, payload, context_.stream());
}

void ChunkCodec::decode(const comm::Range& part, const std::byte* payload) {
  const Timed timed(context_.statistics, Stage::decode, "decode", 4 * part.count);
  context_.kernels.decode(context_.format, payload, part.count, out_ + part.first,
                          context_.stream());
}

// Adds the values of the members in groups of kMaxAddends, the most addends of a kernel. The
// context's `partial` has the sum of the groups so far, in float32, and the kernel of the last
// group writes `payload` and `result`.
void ChunkCodec::add_up(const comm::Range& part, const PayloadFrom& encoded, float* residual,
                        std::byte* payload, float* result) {
  const float* carry = nullptr;
  const int size = int(group_.peers.size());
  for (int first = 0; first < size; first += kernels::kMaxAddends) {
    const int last = std::min(size, first + kernels::kMaxAddends);
    kernels::Addend addends[kernels::kMaxAddends] = {};
    for (int member = first; member < last; ++member) {
      kernels::Addend& addend = addends[member - first];
      if (member == group_.index)
        // The owner's own values are added without ever being encoded.
        addend.exact = in_ + part.first;
      else
        addend.encoded = encoded(member);
    }
    const bool end = last == size;
    context_.kernels.sum_encode(context_.format, random_stream_for(context_, shard_, part), addends,
                                last - first, carry, end ? residual : nullptr, part.count,
                                end ? payload : nullptr, end ? result : context_.partial,
                                context_.stream());
    carry = context_.partial;
  }
}

void ChunkCodec::add_and_encode(const comm::Range& part, std::byte* payload,
                                const PayloadFrom& from) {
  const Timed timed(context_.statistics, Stage::decode, "sum", 4 * part.count);
  // The uncompressed sum comes first, because the second add_up() writes out_, which may be in_.
  if (context_.totals != nullptr) add_up(part, from, nullptr, nullptr, totals(part));
  add_up(part, from, residual(part), payload, out_ + part.first);
}

void ChunkCodec::add_uncompressed(const comm::Range& part, const PayloadFrom& from) {
  const Timed timed(context_.statistics, Stage::decode, "sum", 4 * part.count);
  add_up(part, from, nullptr, nullptr, totals(part));
}

void ChunkCodec::count_infinities(const std::byte* payload, std::uint64_t count) {
  const std::uint16_t infinity = kernels::row_of(context_.format.codec).infinity;
  if (infinity == 0) return;
  constexpr std::uint64_t kBlock = 1024;  // a fixed length, so that compilers vectorize the loop
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
