// SPDX-License-Identifier: BSD-3-Clause
// Two structs that describe one sum of slimpi: Plan (how the sum is done) and Call (its buffers,
// and all else that belongs to this sum alone).
#pragma once
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/described_tensor.h"
#include "comm/memory.h"
#include "comm/node_layout.h"
#include "device/device.h"
#include "kernels/format.h"
#include "observe/statistics.h"
#include "options/config.h"

namespace slimpi::algorithm {
struct Algorithm;
}  // namespace slimpi::algorithm

namespace slimpi::comm {

class Communicator;
class TensorState;
struct Gather;
struct Scatter;

// How one call is made. algorithm/policy.h derives the plan from values that all ranks know, so it
// is the same on every rank. A copy allocates nothing.
struct Plan {
  const algorithm::Algorithm* algorithm = nullptr;
  kernels::Format format;
  Hierarchy hierarchy = Hierarchy::automatic;
  bool error_feedback = false;
  std::uint64_t start = 0;
  bool needs_state = false;  // the call needs a tensor state: for its arrays or its count of calls
  double max_error = 0;      // bound of the relative L2 error; the codec is chosen for it; 0: none
  const std::string* hook = nullptr;  // path of a hook (a user's algorithm); null: no hook
  // The matrices of this buffer, as slimpi_describe_next described them; together at most `count`
  // floats. The program's call owns them, and the ranks compare them before algorithm/powersgd
  // reads them.
  std::span<const MatrixSize> matrices;
};

// The use of a communicator's stream: kernels, copies out of a device, copies into it.
enum class StreamRole { compute, d2h, h2d };

// How the ranks of a node exchange in a call: by shared memory, MPI or NCCL (intra/transports.h).
enum class NodePath { shm, mpi, nccl };

// One allreduce, reduce-scatter or all-gather. The buffers belong to the program, and lie at
// `location`. In an allreduce `in` and `out` hold `count` floats each. In a reduce-scatter `in`
// holds `count` floats and `out` this rank's block; in an all-gather `in` holds this rank's block
// and `out` the `count` floats of all blocks. If the program passed MPI_IN_PLACE, in == out, or, in
// an all-gather, `in` is this rank's block in `out`. `in` is written only where it is also `out`.
//
// Everything that is set for one call only is here, and not on the communicator. The layers pass
// the call down. A call inside a call (plain_call_with_plan()) is a separate object.
struct Call {
  Communicator& communicator;
  CallScratch& scratch;  // borrowed until the program's call ends
  const Plan& plan;
  const float* in;
  float* out;
  std::uint64_t count;
  device::Location location;         // location of both buffers
  device::Stream* stream = nullptr;  // the communicator's, for kernels; null on the host
  std::uint64_t number = 0;  // counts the communicator's compressed calls; the same on all ranks
  TensorState* state = nullptr;  // what earlier calls kept for this tensor; null: not needed

  // Set by Algorithm::run if it used another codec than the codec of the plan's format.
  std::optional<UsedCodec> used_codec = {};

  // Device memory for the sum of this rank's chunk, which the inter-node exchange writes here
  // before it encodes the sum; null if the caller does not need the sum.
  float* totals = nullptr;

  // The counts of a reduce-scatter; null if all ranks get the whole sum. The program's call owns
  // it.
  const Scatter* scatter = nullptr;
  // The blocks of an all-gather; null if the call is a sum. The program's call owns it.
  const Gather* gather = nullptr;
  // True if the input of a reduce-scatter is in memory of another device or GPU than the output.
  // The call then copies it to CallScratch::colocated.
  bool copies_input = false;
  // With blocks, the range of each shard (the part of the vector that one rank of a node exchanges
  // with other nodes). The shard's owner adds up this range inside the node, or sends it to the
  // node's ranks. Empty if all shards have about the same length.
  std::span<const Range> shards = {};

  // The transport of the sum inside the node; the all-gather inside the node uses the same one.
  NodePath node_path = NodePath::shm;

  const device::Device& device = *location.device;  // short for location.device

  device::DeviceStream device_stream() const { return {device, stream}; }
  Collective collective() const {
    return scatter != nullptr  ? Collective::reduce_scatter
           : gather != nullptr ? Collective::allgather
                               : Collective::allreduce;
  }
  // Reserves memory for the call, on the device that has the call's buffers.
  Status reserve(Memory& memory, device::Place place, std::size_t bytes) const;
  // Reserves scratch memory for messages: in memory of the call's device, and, if the device is
  // staged, as many bytes of staging memory.
  Status reserve_messages(std::size_t bytes) const;
};

// Returns a plain call with another plan, on the buffers, scratch memory, stream, number and state
// of `call`. It lacks the scatter, gather, shards, copies_input, totals and node_path of `call`,
// and gets a used_codec of its own from Algorithm::run.
inline Call plain_call_with_plan(const Call& call, const Plan& plan) {
  return {.communicator = call.communicator,
          .scratch = call.scratch,
          .plan = plan,
          .in = call.in,
          .out = call.out,
          .count = call.count,
          .location = call.location,
          .stream = call.stream,
          .number = call.number,
          .state = call.state};
}

// The numbers of UsedCodec, in this order: quantized in 1 to 16 bits, the value codecs of
// kernels/codecs.h, packed, two thin factors (low-rank), a hook, and float64.
constexpr std::size_t kQuantizedKeys = kernels::kMostBits,
                      kValueKeys = std::size(kernels::kValueCodecs);
constexpr UsedCodec kPackedCodec{kQuantizedKeys + kValueKeys},
    kLowRankCodec{kQuantizedKeys + kValueKeys + 1}, kHookCodec{kQuantizedKeys + kValueKeys + 2},
    kDoublesCodec{kQuantizedKeys + kValueKeys + 3};
static_assert(std::size_t(kDoublesCodec) < kMostCodecs,
              "raise kMostCodecs of observe/statistics.h");

inline UsedCodec used_codec(const kernels::Format& format) {
  if (format.codec == kernels::Codec::quantized) return UsedCodec(format.bits - 1);
  if (format.codec == kernels::Codec::packed) return kPackedCodec;
  if (format.codec == kernels::Codec::float64) return kDoublesCodec;
  return UsedCodec(kQuantizedKeys +
                   std::size_t(&kernels::row_of(format.codec) - kernels::kValueCodecs));
}

// Returns the names of all codecs, as SLIMPI_REPORT shows them, in the order of UsedCodec.
inline std::vector<std::string> used_codec_names() {
  std::vector<std::string> names;
  for (std::size_t bits = 1; bits <= kQuantizedKeys; ++bits) names.push_back(std::to_string(bits));
  for (const kernels::CodecRow& row : kernels::kValueCodecs) names.emplace_back(row.name);
  for (const char* const name : {"packed", "low_rank", "hook", "float64"}) names.emplace_back(name);
  return names;
}

}  // namespace slimpi::comm
