// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of one rank in a reduce-scatter and all-gather: encodes the values that the rank
// sends, sums the chunk that it owns, and decodes the sums that it receives. ChunkCodec does not
// communicate, and every schedule uses it, which is why all schedules yield the same bytes. A class
// for hooks (users' codecs) derives from it (algorithm/hook_algorithm.cpp).
#pragma once
#include <functional>

#include "inter/context.h"
#include "kernels/kernels.h"
#include "observe/statistics.h"

namespace slimpi::inter {

class ChunkCodec {
 public:
  // The arguments are those of Schedule::run. `own_first` is where this rank's chunk begins in the
  // shard. All pointers and references must outlive this object.
  ChunkCodec(const Context& context, const comm::InterNodeGroup& group, comm::Range shard,
             std::uint64_t own_first, const float* in, float* out, float* residual);
  virtual ~ChunkCodec() = default;
  ChunkCodec(const ChunkCodec&) = delete;
  ChunkCodec& operator=(const ChunkCodec&) = delete;

  // A function that returns the payload (the encoded values) that a member has sent for a part.
  using PayloadFrom = std::function<const std::byte*(int member)>;

  // Encode and decode `part`, which is relative to the shard's first element. All functions here
  // only queue work on the compute stream. Payloads are in memory of the device.
  virtual void encode(const comm::Range& part, std::byte* payload);
  virtual void decode(const comm::Range& part, const std::byte* payload);
  // Adds the values of all members for a part of this rank's own chunk, in rank order. Those of
  // other members are decoded from their messages, while this rank's own were never encoded.
  // Encodes the sum to `payload`, and decodes `payload` to `out`.
  virtual void add_and_encode(const comm::Range& part, std::byte* payload, const PayloadFrom& from);
  // Adds like add_and_encode(), but writes the sum, uncompressed, to the context's `totals`.
  void add_uncompressed(const comm::Range& part, const PayloadFrom& from);

  // With a codec of 16-bit floats, counts the infinite values of an encoded sum for SLIMPI_REPORT.
  // `payload` is in host memory. Called once the queued work is complete.
  void count_infinities(const std::byte* payload, std::uint64_t count);

  // Returns the header of a member's message with `part`.
  comm::MessageHeader header(const comm::Range& part, int member) const {
    return message_header(context_, shard_, part, group_.peers[std::size_t(member)]);
  }

 protected:
  float* residual(const comm::Range& part) const {
    return residual_ == nullptr ? nullptr : residual_ + part.first;
  }
  float* totals(const comm::Range& part) const {
    return context_.totals + (part.first - own_first_);
  }

  const Context& context_;
  const comm::InterNodeGroup& group_;
  const comm::Range shard_;
  const float* const in_;  // in_, out_ and residual_ point to the shard's first element
  float* const out_;
  float* const residual_;  // or null
  const std::uint64_t own_first_;

 private:
  // Writes the sum of all members to `result`, and encodes it unless `payload` is null.
  void add_up(const comm::Range& part, const PayloadFrom& encoded, float* residual,
              std::byte* payload, float* result);
};

}  // namespace slimpi::inter
