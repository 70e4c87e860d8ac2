// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of a reduce-scatter and all-gather on one rank: it encodes what the rank sends,
// sums what the rank owns and decodes what the rank gets. It knows nothing of messages in flight.
// Every schedule uses it, which is why all give the same bytes. Codecs of hooks derive from it
// (algorithm/hook_algorithm.cpp).
#pragma once
#include <functional>

#include "inter/context.h"
#include "kernels/kernels.h"
#include "observe/statistics.h"

namespace slimpi::inter {

class ChunkCodec {
 public:
  // As Schedule::run. `own_first`: element of the shard at which this rank's chunk begins. All
  // pointers and references must outlive this.
  ChunkCodec(const Context& context, const comm::InterNodeGroup& group, comm::Range shard,
             std::uint64_t own_first, const float* in, float* out, float* residual);
  virtual ~ChunkCodec() = default;
  ChunkCodec(const ChunkCodec&) = delete;
  ChunkCodec& operator=(const ChunkCodec&) = delete;

  // The payload that a member sent for a part.
  using PayloadFrom = std::function<const std::byte*(int member)>;

  // The functions only queue work on the compute stream. `part` counts from the first element of
  // the shard; payloads are in memory of the device.
  virtual void encode(const comm::Range& part, std::byte* payload);
  virtual void decode(const comm::Range& part, const std::byte* payload);
  // For a part of this rank's own chunk: adds what all members have, in rank order, its own values
  // exactly; encodes the sum to `payload` and decodes that to the result.
  virtual void sum(const comm::Range& part, std::byte* payload, const PayloadFrom& from);
  // The same, but the sum is not encoded: it goes to the context's `totals`.
  void total(const comm::Range& part, const PayloadFrom& from);

  // Counts the 16-bit floats of an encoded sum that are infinite, for the report. For a payload in
  // host memory, after the work above is complete.
  void count_infinities(const std::byte* payload, std::uint64_t count);

  // The header of a message with `part`, sent by a member.
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
  const float* const in_;  // the shard's first element, as the next two
  float* const out_;
  float* const residual_;  // or null
  const std::uint64_t own_first_;

 private:
  // The sum that sum() makes, to `result`. Without a payload it is not encoded.
  void add_up(const comm::Range& part, const PayloadFrom& encoded, float* residual,
              std::byte* payload, float* result);
};

}  // namespace slimpi::inter
