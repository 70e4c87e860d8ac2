// SPDX-License-Identifier: BSD-3-Clause
// What a piece of a call's slice is to the wire and to stochastic rounding.
#pragma once
#include "codec/message_header.h"
#include "comm/call.h"

namespace slimpi::inter {

// The header of a message about `part` of `slice` that `sender`, a rank of the communicator, sends.
codec::Message message_header(const comm::Call& call, const kernels::Format& format,
                              const comm::Range& shard, const comm::Range& part, int sender);

// The numbers that this rank draws when it encodes the part.
kernels::RandomStream random_stream_for(const comm::Call& call, const comm::Range& shard,
                                        const comm::Range& part);

}  // namespace slimpi::inter
