// SPDX-License-Identifier: BSD-3-Clause
// The parts of one call that a schedule between nodes uses. A schedule knows no
// communicator and calls no MPI, so a test can build a context and run all ranks in one process.
#pragma once
#include <cstdint>
#include <memory_resource>
#include <optional>

#include "comm/call.h"
#include "comm/message_header.h"
#include "comm/point_to_point.h"

namespace slimpi::inter {

// The streams of a call's device, by StreamRole. All are null on the host; a device that is not
// staged has the first only. The communicator owns them.
struct Streams {
  device::Stream* by_role[3] = {};
};

// Owns nothing: all that it points to must stay until the schedule has returned. The scratch memory
// belongs to the schedule alone until then.
struct Context {
  comm::PointToPoint& exchange;
  Statistics& statistics;
  const device::Device& device;
  const kernels::Kernels& kernels;  // of the device
  Streams streams;

  int rank;                          // this rank; it sends to and receives from ranks of the group
  comm::SegmentClass segment_class;  // the same on all ranks
  kernels::Format format;            // of the messages
  std::uint64_t call, tensor;        // numbers for message headers; the same on all ranks
  std::uint64_t seed;                // of stochastic rounding

  std::byte* messages;  // message buffers, in memory of the device
  std::byte* staging;   // the same in host memory; `messages` itself unless the device is staged
  float* partial;       // of sums that take more than one kernel, in memory of the device
  float* totals;        // Call::totals

  // Where a hook encodes: the most bytes of a payload. Only the hook knows how long one is, so its
  // codec writes the header of each message, in front of the payload. Never with a staged device.
  std::optional<std::uint64_t> hook_bytes{};

  // For objects that live no longer than the exchange.
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();

  device::Stream* stream() const { return streams.by_role[int(comm::StreamRole::compute)]; }
  device::DeviceStream device_stream() const { return {device, stream()}; }
};

// Looks up the streams that algorithm::prepare() has opened.
Status find_streams(comm::Call& call, Streams* streams);

Context context_of(comm::Call& call, const Streams& streams);

// The header of a message with the values `part` of `shard`, sent by `sender`, a rank of the
// communicator. The sender writes it; the receiver makes the same one to check the message.
comm::MessageHeader message_header(const Context& context, const comm::Range& shard,
                                   const comm::Range& part, int sender);

// The random numbers for stochastic rounding when this rank encodes `part` of `shard`. They depend
// only on the seed, the rank, the call and the position in the vector.
kernels::RandomStream random_stream_for(const Context& context, const comm::Range& shard,
                                        const comm::Range& part);
kernels::RandomStream random_stream_for(const comm::Call& call, const comm::Range& shard,
                                        const comm::Range& part);

}  // namespace slimpi::inter
