// SPDX-License-Identifier: BSD-3-Clause
// An all-gather of the program, which is the second phase of the pairwise schedule (pairwise.cpp)
// alone, with the program's blocks as chunks.
#include "comm/scatter.h"
#include "inter/chunk_reduction.h"
#include "inter/pairwise.h"
#include "inter/schedule.h"

namespace slimpi::inter {

namespace {

// The arithmetic of an all-gather alone: encodes this rank's block where a sum would encode the sum
// of its chunk, and decodes each block to its place in the result.
class GatherCodec : public ChunkCodec {
 public:
  GatherCodec(const Context& context, const comm::InterNodeGroup& group, const comm::Gather& gather,
              comm::Range whole, std::uint64_t own_first, const float* in, float* out)
      : ChunkCodec(context, group, whole, own_first, in, out, nullptr), gather_(gather) {}

  void decode(const comm::Range& part, const std::byte* payload) override {
    const Timed timed(context_.statistics, Stage::decode, "decode", 4 * part.count);
    context_.kernels.decode(context_.format, payload, part.count,
                            out_ + gather_.place_of_element(part.first), context_.stream());
  }
  void add_and_encode(const comm::Range& part, std::byte* payload, const PayloadFrom&) override {
    {
      const Timed timed(context_.statistics, Stage::encode, "encode", 4 * part.count);
      context_.kernels.encode(context_.format, random_stream_for(context_, shard_, part),
                              in_ + (part.first - own_first_), nullptr, part.count, payload,
                              context_.stream());
    }
    decode(part, payload);
  }

 private:
  const comm::Gather& gather_;
};

}  // namespace

Status run_pairwise_gather(const Context& context, const comm::InterNodeGroup& group,
                           const comm::Gather& gather, std::span<const comm::Range> chunks,
                           const float* in, float* out) {
  const comm::Range whole{0, gather.blocks.back().first + gather.blocks.back().count};
  const ExchangeSize size = size_of(context, group, whole.count);
  const SegmentedLayout layout(size, chunks, gather_segments(size, comm::longest_of(gather.blocks)),
                               {.scatters = false}, context.memory);
  GatherCodec codec(context, group, gather, whole, layout.chunk(group.index).first, in, out);
  return run_pairwise(context, layout, group.peers, whole, codec);
}

}  // namespace slimpi::inter
