// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/piece.h"

#include "algorithm/communicator.h"

namespace slimpi::algorithm {

codec::Message message_about(const Call& call, const kernels::Format& format, const Range& slice,
                             const Range& part, int sender) {
  codec::Message message;
  message.format = format;
  message.first = slice.first + part.first;
  message.count = part.count;
  message.call = call.number;
  message.sender = std::uint32_t(sender);
  message.slot = call.slot == nullptr ? 0 : call.slot->number;
  return message;
}

kernels::Draw draw_for(const Call& call, const Range& slice, const Range& part) {
  return {call.communicator.config().seed, std::uint32_t(call.communicator.rank()), call.number,
          slice.first + part.first};
}

}  // namespace slimpi::algorithm
