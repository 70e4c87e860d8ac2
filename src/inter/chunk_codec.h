// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of a reduce-scatter and all-gather on one rank: it encodes what the rank sends,
// sums what the rank owns and decodes what the rank gets. It knows nothing of messages in flight.
// Every schedule uses it, which is why all give the same bytes.
#pragma once
#include <functional>
#include <memory_resource>
#include <span>
#include <vector>

#include "base/statistics.h"
#include "inter/context.h"
#include "kernels/kernels.h"

namespace slimpi::inter {

// Counts the 16-bit values that became infinite on this rank, for the report. All payloads are in
// host memory. Does nothing if the codec has no infinity.
class Overflow {
 public:
  // `memory`: of the call; it keeps the largest copy of keep().
  Overflow(kernels::Codec codec, Statistics& statistics, std::pmr::memory_resource* memory)
      : infinity_(kernels::row_of(codec).infinity), statistics_(statistics), own_(memory) {}

  bool counts() const { return infinity_ != 0; }

  // `payload` was encoded from the floats `from`. If those are not in host memory it is null, and
  // then values that were infinite before are counted too.
  void encoded(const std::byte* payload, const float* from, std::uint64_t count);

  // To be called before a sum overwrites this rank's own addend: keeps a copy if it is not all
  // finite.
  void keep(const float* own, std::uint64_t count, const kernels::Kernels& host);

  // `payload` was encoded from the sum of this rank's own addend and these addends.
  void summed(const std::byte* payload, std::span<const std::byte* const> addends,
              std::uint64_t count);

 private:
  bool is_infinite(const std::byte* payload, std::uint64_t i) const;
  bool any(const std::byte* payload, std::uint64_t count) const;

  const std::uint16_t infinity_;  // bits of +infinity; 0 if it has none
  Statistics& statistics_;
  std::pmr::vector<float> own_;  // the addend of the last keep(); empty if all of it is finite
};

class ChunkCodec {
 public:
  // As Schedule::run. All pointers and references must outlive this.
  ChunkCodec(const Context& context, const comm::InterNodeGroup& group, comm::Range shard,
             const float* in, float* out, float* residual);

  // The payload that a member sent for a part.
  using PayloadFrom = std::function<const std::byte*(int member)>;

  // These only queue work on the compute stream. `part` counts from the first element of the shard;
  // payloads are in memory of the device.
  void encode(const comm::Range& part, std::byte* payload);
  void decode(const comm::Range& part, const std::byte* payload);
  // For a part of this rank's own chunk: adds what all members have, in rank order, its own values
  // exactly; encodes the sum to `payload` and decodes that to the result.
  void sum(const comm::Range& part, std::byte* payload, const PayloadFrom& from);

  // Count the 16-bit floats that became infinite. For payloads in host memory, after the work above
  // is complete, and for `summed` before the next sum() is queued.
  void encoded(const comm::Range& part, const std::byte* payload);
  void summed(const comm::Range& part, const std::byte* payload, const PayloadFrom& from);

  // The header of a message with `part`, sent by a member.
  comm::MessageHeader header(const comm::Range& part, int member) const {
    return message_header(context_, shard_, part, group_.peers[std::size_t(member)]);
  }

 private:
  float* residual(const comm::Range& part) const {
    return residual_ == nullptr ? nullptr : residual_ + part.first;
  }

  const Context& context_;
  const comm::InterNodeGroup& group_;
  const comm::Range shard_;
  const float* const in_;  // the shard's first element, as the next two
  float* const out_;
  float* const residual_;          // or null
  const std::uint64_t own_first_;  // element of the shard at which this rank's chunk begins
  Overflow overflow_;
};

}  // namespace slimpi::inter
