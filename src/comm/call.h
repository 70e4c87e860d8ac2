// SPDX-License-Identifier: BSD-3-Clause
// Describes one sum that slimpi runs: Plan says how it is done, and Call has its buffers and
// everything else that belongs to this sum alone.
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

// How a call is done. algorithm/policy.h derives the plan from values that all ranks know, so it is
// the same on every rank. Copying a plan allocates nothing.
struct Plan {
  const algorithm::Algorithm* algorithm = nullptr;
  kernels::Format format;
  Hierarchy hierarchy = Hierarchy::automatic;
  bool error_feedback = false;
  std::uint64_t start = 0;
  bool needs_state = false;  // for its arrays or its count of calls
  double max_error = 0;      // bound of the relative L2 error that the codec must keep; 0: none
  const std::string* hook = nullptr;  // path of a hook (a user's algorithm), or null
  // How the user named the hook, for errors: "SLIMPI_ALGORITHM=hook:PATH", or a row of the rules.
  const std::string* hook_option = nullptr;
  // The matrices of this buffer as slimpi_describe_next() describes them, together at most `count`
  // floats. Valid until the program's MPI call returns. The ranks compare the matrices before
  // algorithm/powersgd reads them.
  std::span<const MatrixSize> matrices;
};

// The purpose of a communicator's stream: kernels, copies out of a device, copies into it.
enum class StreamRole { compute, d2h, h2d };

// How the ranks of a node exchange data in a call: by shared memory, MPI or NCCL
// (intra/transports.h).
enum class NodePath { shm, mpi, nccl };

// One allreduce, reduce-scatter or all-gather. The buffers are the program's, at `location`. In an
// allreduce, `in` and `out` have `count` floats each. In a reduce-scatter, `in` has `count` floats
// and `out` this rank's block. In an all-gather, `in` has this rank's block and `out` the `count`
// floats of all blocks. With MPI_IN_PLACE, in == out or, in an all-gather, `in` is this rank's
// block in `out`. `in` is written only where it is also `out`.
//
// Everything that is set for one call only is kept here and not in the communicator, so the layers
// pass the Call down. A call inside a call (plain_call_with_plan()) is a separate object.
struct Call {
  Communicator& communicator;
  CallScratch& scratch;  // borrowed until the program's call ends
  const Plan& plan;
  const float* in;
  float* out;
  std::uint64_t count;
  device::Location location;         // where both buffers are
  device::Stream* stream = nullptr;  // for kernels; owned by the communicator; null on the host
  std::uint64_t number = 0;  // counts the communicator's compressed calls; the same on all ranks
  TensorState* state = nullptr;  // of this tensor; null if not needed

  // Algorithm::run sets this if it has used another codec than that of the plan's format.
  std::optional<UsedCodec> used_codec = {};

  // Device memory where the inter-node exchange stores the sum of this rank's chunk before encoding
  // it, or null if the caller does not need that sum.
  float* totals = nullptr;

  // The blocks of a reduce-scatter, or null if all ranks receive the whole sum. Owned by the
  // program's call.
  const Scatter* scatter = nullptr;
  // The blocks of an all-gather, or null if the call is a sum. Owned by the program's call.
  const Gather* gather = nullptr;
  // Whether the input of a reduce-scatter is on another device or GPU than the output, so that the
  // call copies it to CallScratch::colocated.
  bool copies_input = false;
  // In a reduce-scatter or all-gather, the range of each shard (the part of the vector that one
  // rank of a node exchanges with other nodes). The shard's owner adds up this range inside the
  // node, or passes it to the node's ranks. Empty if all shards have about the same length.
  std::span<const Range> shards = {};

  // The transport of the sum inside the node, which the all-gather inside the node also uses.
  NodePath node_path = NodePath::shm;

  const device::Device& device = *location.device;  // short for *location.device

  device::DeviceStream device_stream() const { return {device, stream}; }
  Collective collective() const {
    return scatter != nullptr  ? Collective::reduce_scatter
           : gather != nullptr ? Collective::allgather
                               : Collective::allreduce;
  }
  // Reserves memory for the call on the device of the call's buffers.
  Status reserve(Memory& memory, device::Place place, std::size_t bytes) const;
  // Reserves scratch memory for messages on the call's device and, if messages of that device are
  // staged, as much staging memory.
  Status reserve_messages(std::size_t bytes) const;
};

// Returns a plain call under another plan, with the buffers, scratch memory, stream, number and
// state of `call`, but without its scatter, gather, shards, copies_input, totals and node_path.
// Algorithm::run sets a used_codec of its own.
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

// The numbers of UsedCodec, in this order: quantized with 1 to 16 bits, the value codecs of
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

// Returns the names of all codecs in the order of UsedCodec, as SLIMPI_REPORT shows them.
inline std::vector<std::string> used_codec_names() {
  std::vector<std::string> names;
  for (std::size_t bits = 1; bits <= kQuantizedKeys; ++bits) names.push_back(std::to_string(bits));
  for (const kernels::CodecRow& row : kernels::kValueCodecs) names.emplace_back(row.name);
  for (const char* const name : {"packed", "low_rank", "hook", "float64"}) names.emplace_back(name);
  return names;
}

}  // namespace slimpi::comm
