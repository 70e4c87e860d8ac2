// SPDX-License-Identifier: BSD-3-Clause
#include "intra/intra_node.h"

#include <string_view>

#include "comm/communicator.h"
#include "comm/memory.h"
#include "intra/node_state.h"
#include "intra/transports.h"

namespace slimpi::intra {

namespace {

// Returns the group for a communicator whose ranks all share one node, where every rank owns a
// shard.
comm::InterNodeGroup one_node_group(const comm::Communicator& communicator) {
  comm::InterNodeGroup group;
  group.shards = int(communicator.layout().node_ranks().size());
  group.shard_index = communicator.layout().local_rank();
  return group;
}

// The transports in the order of comm::NodePath. A call begins with the first one that is possible,
// so shm, which has a condition, comes before mpi, which has none. No call begins with nccl,
// because a rank does not know yet whether the buffers of all ranks allow it.
constexpr Transport kTransports[] = {
    {"shm", can_share_memory, reserve_for_shm, reduce_scatter_by_shm, all_gather_by_shm},
    {"mpi", [](comm::Communicator&) { return true; }, reserve_for_mpi, reduce_scatter_by_mpi,
     all_gather_by_mpi},
    {"nccl", [](comm::Communicator&) { return false; }, nullptr, reduce_scatter_by_nccl,
     all_gather_by_nccl},
};
static_assert(kTransports[int(comm::NodePath::shm)].name == std::string_view("shm") &&
              kTransports[int(comm::NodePath::mpi)].name == std::string_view("mpi") &&
              kTransports[int(comm::NodePath::nccl)].name == std::string_view("nccl"));

comm::NodePath first_path(comm::Communicator& communicator) {
  int path = 0;
  while (!kTransports[path].possible(communicator)) ++path;
  return comm::NodePath(path);
}

}  // namespace

const Transport& transport(comm::NodePath path) {
  return kTransports[int(path)];
}

comm::Range shard_range(std::uint64_t count, const kernels::Format& format,
                        const comm::InterNodeGroup& group, int shard_index) {
  return comm::chunk_of(count, group.shards, shard_index, comm::chunk_alignment(format));
}

comm::Range shard_of_call(const comm::Call& call, const comm::InterNodeGroup& group,
                          int shard_index) {
  if (!call.shards.empty()) return call.shards[std::size_t(shard_index)];
  return shard_range(call.count, call.plan.format, group, shard_index);
}

Status reserve_node_sum(const comm::Call& call, const comm::InterNodeGroup& group) {
  if (group.flat || call.communicator.layout().node_ranks().size() == 1) return Status::ok;
  return transport(first_path(call.communicator)).reserve(call, group);
}

Status intra_allreduce(comm::Call& call) {
  const Timed timed(call.communicator.statistics(), Stage::intra, "node allreduce", 4 * call.count);
  const comm::InterNodeGroup group = one_node_group(call.communicator);
  SLIMPI_TRY(allreduce_by_shm(call, group));
  return call.node_path == comm::NodePath::nccl ? allreduce_by_nccl(call, group) : Status::ok;
}

// Reserves the memory of shm, and always call.scratch.sums: add_in_pairs() may need it for
// intermediate sums with any number of ranks, whereas reserve_for_shm() reserves it only for more
// than kMaxAddends ranks.
Status reserve_intra_allreduce(const comm::Call& call) {
  const comm::InterNodeGroup group = one_node_group(call.communicator);
  SLIMPI_TRY(reserve_for_shm(call, group));
  const std::size_t size = call.communicator.layout().node_ranks().size();
  return call.reserve(call.scratch.sums, device::Place::device, shared_scratch_bytes(size, group));
}

Status intra_reduce_scatter(comm::Call& call, const comm::InterNodeGroup& group) {
  const Timed timed(call.communicator.statistics(), Stage::intra, "node sum", 4 * call.count);
  call.node_path = first_path(call.communicator);
  const comm::NodePath first = call.node_path;
  SLIMPI_TRY(transport(first).reduce_scatter(call, group));
  return call.node_path == first ? Status::ok
                                 : transport(call.node_path).reduce_scatter(call, group);
}

Status intra_all_gather(comm::Call& call, const comm::InterNodeGroup& group) {
  const Timed timed(call.communicator.statistics(), Stage::intra, "node share", 4 * call.count);
  return transport(call.node_path).all_gather(call, group);
}

}  // namespace slimpi::intra
