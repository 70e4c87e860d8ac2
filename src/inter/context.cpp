// SPDX-License-Identifier: BSD-3-Clause
#include "inter/context.h"

#include "comm/communicator.h"

namespace slimpi::inter {

Status find_streams(comm::Call& call, Streams* streams) {
  using comm::StreamRole;
  streams->by_role[int(StreamRole::compute)] = call.stream;
  if (!call.device.staged) return Status::ok;
  // algorithm::prepare() has opened these streams.
  for (const StreamRole role : {StreamRole::d2h, StreamRole::h2d})
    SLIMPI_TRY(call.communicator.stream_for(call.location, &streams->by_role[int(role)], role));
  return Status::ok;
}

Context context_of(comm::Call& call) {
  comm::Communicator& communicator = call.communicator;
  comm::CallScratch& scratch = call.scratch;
  std::byte* const messages = scratch.near.data();
  return {.exchange = communicator.exchange(),
          .statistics = communicator.statistics(),
          .device = call.device,
          .kernels = *call.device.kernels(),
          .rank = communicator.rank(),
          .segment_class = communicator.segment_class(),
          .format = call.plan.format,
          // Receivers compare this number with their own, and every random stream depends on it.
          .call = call.number,
          .tensor = call.state == nullptr ? 0 : call.state->number,
          .seed = communicator.config().seed,
          .messages = messages,
          // If the device is not staged (not a GPU), MPI sends from the memory that kernels write.
          .staging = call.device.staged ? scratch.staging.data() : messages,
          .partial = scratch.sums.floats(),
          .totals = call.totals,
          .memory = &scratch.objects};
}

comm::MessageHeader message_header(const Context& context, const comm::Range& shard,
                                   const comm::Range& part, int sender) {
  comm::MessageHeader message;
  message.format = context.format;
  // The position counts from the start of the vector, so that parts of different shards have
  // different headers.
  message.first = shard.first + part.first;
  message.count = part.count;
  message.call = context.call;
  message.sender = std::uint32_t(sender);
  // The receiver checks that both ranks sum the same tensor.
  message.tensor = context.tensor;
  message.hook = context.hook_bytes.has_value();
  message.payload = context.hook_bytes.value_or(0);
  return message;
}

kernels::RandomStream random_stream_for(const Context& context, const comm::Range& shard,
                                        const comm::Range& part) {
  // The last number is the position in the vector, so the random numbers of an element do not
  // depend on the division into segments.
  return {context.seed, std::uint32_t(context.rank), context.call, shard.first + part.first};
}

kernels::RandomStream random_stream_for(const comm::Call& call, const comm::Range& shard,
                                        const comm::Range& part) {
  return {call.communicator.config().seed, std::uint32_t(call.communicator.rank()), call.number,
          shard.first + part.first};
}

}  // namespace slimpi::inter
