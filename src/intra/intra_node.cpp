// SPDX-License-Identifier: BSD-3-Clause
#include "intra/intra_node.h"

#include <algorithm>

#include "base/float_environment.h"
#include "comm/call_scratch.h"
#include "comm/communicator.h"
#include "comm/kernel_result.h"
#include "intra/node_state.h"
#include "intra/pass_decision.h"
#include "intra/transports.h"

namespace slimpi::intra {

namespace {

// On one node: every rank owns a shard.
comm::InterNodeGroup one_node_group(const comm::Communicator& communicator) {
  comm::InterNodeGroup group;
  group.shards = int(communicator.layout().node_ranks().size());
  group.shard_index = communicator.layout().local_rank();
  return group;
}

// A device gives the processor's bytes only in the default environment and without NaN, because its
// NaNs have other bits. If no value is above the limit, no sum is infinite, and so no two
// infinities make a NaN. A rank with host buffers checks its values, too, where a device adds them
// (`with_device`).
Status describe_environment(const comm::Call& call, bool with_device, std::uint64_t* word) {
  const std::uint32_t control = callers_float_control();
  *word |= std::uint64_t(control) << published::kEnvironmentShift;
  if (call.device.kernels()->add == nullptr)
    *word |= published::kOnDevice;
  else if (!with_device)
    return Status::ok;
  *word |= published::kChecked;
  bool beyond = control != kDefaultFloatControl;
  const float limit = kernels::kMaxFloat / float(call.communicator.size() + 1);
  if (!beyond)
    SLIMPI_TRY(comm::find_beyond(call, call.location, call.in, call.count, limit, &beyond));
  if (beyond) *word |= published::kUnfit;
  return Status::ok;
}

}  // namespace

comm::Range shard_range(std::uint64_t count, const kernels::Format& format,
                        const comm::InterNodeGroup& group, int shard_index) {
  return comm::chunk_of(count, group.shards, shard_index, comm::chunk_alignment(format));
}

Status reserve_node_sum(const comm::Call& call, const comm::InterNodeGroup& group) {
  comm::Communicator& communicator = call.communicator;
  const std::size_t size = communicator.layout().node_ranks().size();
  if (group.flat || size == 1) return Status::ok;
  comm::CallScratch& scratch = call.scratch;
  Statistics& statistics = communicator.statistics();
  const std::uint64_t floats = shared_scratch_floats(size, group);
  if (shared_of(communicator) == nullptr)
    SLIMPI_TRY(reserve_node_messages(call, group));
  else if (call.device.staged)
    SLIMPI_TRY(
        scratch.node_addends().reserve(call.location, device::Place::device, floats, statistics));
  if (size <= kernels::kMaxAddends) return Status::ok;  // a kernel adds them at once
  return scratch.node_partial().reserve(call.location, device::Place::device,
                                        std::max(floats, kMessageFloats), statistics);
}

Status intra_allreduce(comm::Call& call, bool verified, NodeResult* result) {
  const Timed timed(call.communicator.statistics(), Stage::intra, "node allreduce", 4 * call.count);
  const comm::InterNodeGroup group = one_node_group(call.communicator);
  Status status = Status::ok;
  for (const bool with_device : {false, true}) {
    std::uint64_t word = verified ? 0 : published::kUnverified;
    *result = {};
    status = describe_environment(call, with_device, &word);
    if (status == Status::ok) status = allreduce_in_blocks(call, group, word, result);
    if (status != Status::ok || !result->unchecked) break;
  }
  // For nccl the function above has agreed on the way and has added nothing.
  if (status == Status::ok && call.node_path == DevicePath::Path::nccl && !result->unverified &&
      !result->left_to_mpi)
    status = allreduce_by_nccl(call, group);
  return status;
}

Status reserve_intra_allreduce(const comm::Call& call) {
  comm::Communicator& communicator = call.communicator;
  Statistics& statistics = communicator.statistics();
  const comm::InterNodeGroup group = one_node_group(communicator);
  const std::size_t size = communicator.layout().node_ranks().size();
  const std::uint64_t floats = shared_scratch_floats(size, group);
  SLIMPI_TRY(comm::reserve_find_beyond(call, call.location));
  // Copies of other ranks' values, which kernels of a device cannot read where they are.
  if (call.device.staged)
    SLIMPI_TRY(call.scratch.node_addends().reserve(call.location, device::Place::device, floats,
                                                   statistics));
  // Pairwise sums, and behind them a sum that is held back; see OneNodePass.
  return call.scratch.node_partial().reserve(call.location, device::Place::device, floats,
                                             statistics);
}

Status intra_reduce_scatter(comm::Call& call, const comm::InterNodeGroup& group) {
  const Timed timed(call.communicator.statistics(), Stage::intra, "node sum", 4 * call.count);
  // A segment exists on all ranks of the communicator or on none.
  if (shared_of(call.communicator) == nullptr) return reduce_scatter_by_mpi(call, group);
  SLIMPI_TRY(reduce_scatter_in_blocks(call, group));
  return call.node_path == DevicePath::Path::nccl ? reduce_scatter_by_nccl(call, group)
                                                  : Status::ok;
}

Status intra_all_gather(comm::Call& call, const comm::InterNodeGroup& group) {
  const Timed timed(call.communicator.statistics(), Stage::intra, "node share", 4 * call.count);
  if (shared_of(call.communicator) == nullptr) return all_gather_by_mpi(call, group);
  // The reduce-scatter has chosen the way for both phases.
  return call.node_path == DevicePath::Path::nccl ? all_gather_by_nccl(call, group)
                                                  : all_gather_in_blocks(call, group);
}

}  // namespace slimpi::intra
