// SPDX-License-Identifier: BSD-3-Clause
// The message header and the random stream of a segment of a call's shard.
#pragma once
#include "codec/message_header.h"
#include "comm/call.h"

namespace slimpi::inter {

// The header of a message with the values `part` of `shard`, sent by `sender`, a rank of the
// communicator. The sender writes it; the receiver makes the same one to check the message.
codec::Message message_header(const comm::Call& call, const kernels::Format& format,
                              const comm::Range& shard, const comm::Range& part, int sender);

// The random numbers for stochastic rounding when this rank encodes `part`. They depend only on the
// seed, the rank, the call and the position in the vector.
kernels::RandomStream random_stream_for(const comm::Call& call, const comm::Range& shard,
                                        const comm::Range& part);

}  // namespace slimpi::inter
