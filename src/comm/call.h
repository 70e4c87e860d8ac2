// SPDX-License-Identifier: BSD-3-Clause
// One sum of slimpi: the plan that policy made for it, and the call itself.
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

// How one call is done. Policy makes it from what all ranks know, so it is the same on every rank.
// A copy allocates nothing.
struct Plan {
  const algorithm::Algorithm* algorithm = nullptr;
  kernels::Format format;
  Hierarchy hierarchy = Hierarchy::automatic;
  bool error_feedback = false;
  std::uint64_t start = 0;
  bool needs_state = false;  // the call needs a tensor state: for its arrays or its count of calls
  double max_error = 0;  // of the total, relative L2: the codec is chosen for it; 0: format is it
  const std::string* hook = nullptr;  // algorithm::hook_file() of the user's; null: no hook
  // The matrices of this buffer, from slimpi_describe_next; together at most `count` floats.
  // algorithm/powersgd reads them. The ranks compare them before that. The call of the program owns
  // them.
  std::span<const MatrixSize> matrices;
};

// The use of a communicator's stream: kernels, copies out of a device, copies into it.
enum class StreamRole { compute, d2h, h2d };

// How a call exchanges inside its node: a row of the table in intra/transports.h.
enum class NodePath { shm, mpi, nccl };

// One allreduce or reduce-scatter. `in` holds `count` floats at `location`, `out` the same, or of a
// reduce-scatter this rank's block; in == out if the program passed MPI_IN_PLACE. `in` is never
// written unless it is also `out`. The buffers belong to the program.
//
// All that is set for one call only is here, and nothing of it on the communicator. The layers pass
// the call down; a call inside a call (with_plan()) has its own.
struct Call {
  Communicator& communicator;
  CallScratch& scratch;  // leased by the program's call until it ends
  const Plan& plan;
  const float* in;
  float* out;
  std::uint64_t count;
  device::Location location;  // of both buffers
  device::Stream* stream;     // of the communicator, for kernels; null on the host
  std::uint64_t number;       // of the communicator's compressed calls; the same on all ranks
  TensorState* state;         // of this buffer; null if the plan needs none

  // Set by run when all ranks found together that the call is left to MPI after all (fallback).
  // `out` and the state are then unchanged.
  std::optional<BypassReason> bypass = {};

  // Set by run where it used another codec than that of the plan's format.
  std::optional<UsedCodec> used_codec = {};

  // The inter-node exchange writes here the sums of this rank's chunk before they are encoded, in
  // memory of the device; null if they are not needed.
  float* totals = nullptr;

  // The counts of a reduce-scatter; null: all ranks get the whole sum. The program's call owns it.
  const Scatter* scatter = nullptr;
  bool copies_input = false;  // of a reduce-scatter: `in` will be CallScratch::colocated
  // The shards that their owners on this rank's node add, or share; empty: equal shards.
  std::span<const Range> shards = {};

  // Set by the sum inside the node, for the all-gather after it.
  NodePath node_path = NodePath::shm;

  const device::Device& device = *location.device;  // short for that

  device::DeviceStream device_stream() const { return {device, stream}; }
  // Reserves memory for the call, where its buffers are.
  Status reserve(Memory& memory, device::Place place, std::size_t bytes) const;
};

// The call with another plan: the same buffers, scratch memory, state and number in messages. What
// it sets is read there, not in `call`.
inline Call with_plan(const Call& call, const Plan& plan) {
  return {call.communicator, call.scratch,  plan,        call.in,     call.out,
          call.count,        call.location, call.stream, call.number, call.state};
}

// The codec of a compressed call, for the statistics and the report: 1 to 16 bits,
// the value codecs of kernels/codecs.h, packed, two thin factors, or a hook.
constexpr std::size_t kQuantizedKeys = kernels::kMostBits,
                      kValueKeys = std::size(kernels::kValueCodecs);
constexpr UsedCodec kPackedCodec{kQuantizedKeys + kValueKeys},
    kLowRankCodec{kQuantizedKeys + kValueKeys + 1}, kHookCodec{kQuantizedKeys + kValueKeys + 2};
static_assert(std::size_t(kHookCodec) < kMostCodecs, "raise kMostCodecs of observe/statistics.h");

inline UsedCodec used_codec(const kernels::Format& format) {
  if (format.codec == kernels::Codec::quantized) return UsedCodec(format.bits - 1);
  if (format.codec == kernels::Codec::packed) return kPackedCodec;
  return UsedCodec(kQuantizedKeys +
                   std::size_t(&kernels::row_of(format.codec) - kernels::kValueCodecs));
}

// In the order of UsedCodec: the keys of the report.
inline std::vector<std::string> used_codec_names() {
  std::vector<std::string> names;
  for (std::size_t bits = 1; bits <= kQuantizedKeys; ++bits) names.push_back(std::to_string(bits));
  for (const kernels::CodecRow& row : kernels::kValueCodecs) names.emplace_back(row.name);
  for (const char* const name : {"packed", "low_rank", "hook"}) names.emplace_back(name);
  return names;
}

}  // namespace slimpi::comm
