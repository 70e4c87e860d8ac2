// SPDX-License-Identifier: BSD-3-Clause
// The part of a call that a schedule between nodes knows. A schedule knows no communicator and
// calls no MPI, so a test can make a Context and run all ranks in one process.
#pragma once
#include <cstdint>
#include <memory_resource>
#include <optional>

#include "comm/call.h"
#include "comm/message_header.h"
#include "comm/point_to_point.h"

namespace slimpi::inter {

// The streams of a call's device, by StreamRole, owned by the communicator. On the host all are
// null. On a staged device (a GPU) all are open, and on another device only the compute stream is.
struct Streams {
  device::Stream* by_role[3] = {};
};

// The context of a schedule. It owns nothing: all that it points to must live until the schedule
// has returned, and no other code may use the scratch memory meanwhile.
struct Context {
  comm::PointToPoint& exchange;
  Statistics& statistics;
  const device::Device& device;
  const kernels::Kernels& kernels;  // of the device
  Streams streams{};

  int rank;                          // this rank in the communicator
  comm::SegmentClass segment_class;  // the same on all ranks
  kernels::Format format;            // of the messages
  std::uint64_t call, tensor;        // the numbers of the call and of the tensor state in headers
  std::uint64_t seed;                // of stochastic rounding

  std::byte* messages;  // message buffers, in memory of the device
  std::byte* staging;   // message buffers in host memory; `messages` if not staged
  float* partial;       // sums that take more than one kernel, in memory of the device
  float* totals;        // Call::totals

  // The largest possible payload in bytes, set only if a hook (a user's codec) encodes. Only the
  // hook knows the length of each payload, so its ChunkCodec writes the message headers. Never set
  // with a staged device (a GPU).
  std::optional<std::uint64_t> hook_bytes{};

  // The memory for lists and other objects that live no longer than the exchange.
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();

  device::Stream* stream() const { return streams.by_role[int(comm::StreamRole::compute)]; }
  device::DeviceStream device_stream() const { return {device, stream()}; }
};

// Returns the context for a schedule that runs in the call. Its streams are not set yet;
// find_streams() finds them.
Context context_of(comm::Call& call);

// Sets *streams to the streams that algorithm::prepare() has opened for the call's device.
Status find_streams(comm::Call& call, Streams* streams);

// Returns the header of a message with the values `part` of `shard`, sent by `sender`, a rank of
// the communicator. The sender writes it, and the receiver checks the message against it.
comm::MessageHeader message_header(const Context& context, const comm::Range& shard,
                                   const comm::Range& part, int sender);

// Returns the random stream for rounding `part` of `shard` on this rank. It depends only on the
// seed, the rank, the call and the position in the vector.
kernels::RandomStream random_stream_for(const Context& context, const comm::Range& shard,
                                        const comm::Range& part);
kernels::RandomStream random_stream_for(const comm::Call& call, const comm::Range& shard,
                                        const comm::Range& part);

}  // namespace slimpi::inter
