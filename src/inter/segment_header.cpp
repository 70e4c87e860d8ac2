// SPDX-License-Identifier: BSD-3-Clause
#include "inter/segment_header.h"

#include "comm/communicator.h"

namespace slimpi::inter {

codec::Message message_header(const comm::Call& call, const kernels::Format& format,
                              const comm::Range& shard, const comm::Range& part, int sender) {
  codec::Message message;
  message.format = format;
  message.first = shard.first + part.first;
  message.count = part.count;
  message.call = call.number;
  message.sender = std::uint32_t(sender);
  message.tensor = call.state == nullptr ? 0 : call.state->number;
  return message;
}

kernels::RandomStream random_stream_for(const comm::Call& call, const comm::Range& shard,
                                        const comm::Range& part) {
  return {call.communicator.config().seed, std::uint32_t(call.communicator.rank()), call.number,
          shard.first + part.first};
}

}  // namespace slimpi::inter
