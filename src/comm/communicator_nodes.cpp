// SPDX-License-Identifier: BSD-3-Clause
// The part of Communicator that finds the nodes, their leaders and the inter-node groups.
#include <algorithm>

#include "base/fiber.h"
#include "base/hash.h"
#include "comm/communicator.h"
#include "observe/log.h"
#include "topology/topology.h"

namespace slimpi::comm {

namespace {
// Sets *lowest to the lowest rank of `comm` that can share memory with this rank.
Status find_lowest_here(const mpi::Api& api, mpi::Comm comm, int* lowest) {
  int rank = 0;
  api.Comm_rank(comm, &rank);
  mpi::Comm here = mpi::abi.comm_null;
  // The key is the rank, so that the split keeps the order of ranks.
  int code = mpi::kSuccess;
  call_blocking([&] {
    code = api.Comm_split_type(comm, mpi::abi.comm_type_shared, rank, mpi::abi.info_null, &here);
  });
  if (code == mpi::kSuccess) code = mpi::first_rank_in(api, here, comm, lowest);
  if (here != mpi::abi.comm_null) api.Comm_free(&here);
  if (code == mpi::kSuccess) return Status::ok;
  return fail(Status::mpi, "finding the ranks of this machine: " + mpi::error_text(api, code));
}

// Sets *key to a number that the ranks of one node have in common and no other rank has. With
// SLIMPI_HIERARCHY=flat every rank is a node, so that the bytes of a sum do not depend on where the
// ranks run. With ranks_per_node = k, every k consecutive ranks of MPI_COMM_WORLD (or of `comm` if
// there is no MPI_COMM_WORLD) are a node. With 0, the ranks that can share memory are a node;
// MPI_Comm_split_type finds them, in a call that is collective over `comm` and blocks.
Status find_node_key(const mpi::Api& api, mpi::Comm comm, const Config& config,
                     std::uint64_t* key) {
  const std::uint64_t ranks_per_node = config.ranks_per_node;
  int rank = 0;
  if (config.hierarchy == Hierarchy::flat) {
    api.Comm_rank(comm, &rank);
    *key = std::uint64_t(rank);
    return Status::ok;
  }
  if (ranks_per_node == 0) {
    SLIMPI_TRY(find_lowest_here(api, comm, &rank));
    *key = std::uint64_t(rank);
    return Status::ok;
  }
  // The ranks are those of MPI_COMM_WORLD, so that all communicators have the same nodes.
  api.Comm_rank(mpi::has_world(api) ? mpi::abi.comm_world : comm, &rank);
  *key = std::uint64_t(rank) / ranks_per_node;
  return Status::ok;
}

// Returns the layout in which ranks with equal keys share a node. `keys` has one key per rank.
NodeLayout make_node_layout(int rank, std::span<const std::uint64_t> keys) {
  NodeLayout layout;
  layout.rank = rank;
  layout.size = int(keys.size());
  // The number of each node, by key. Nodes are numbered in the order of their lowest ranks.
  std::map<std::uint64_t, int> numbers;
  for (int other = 0; other < layout.size; ++other) {
    const auto [entry, inserted] =
        numbers.emplace(keys[std::size_t(other)], int(layout.ranks_of.size()));
    if (inserted) layout.ranks_of.emplace_back();
    layout.node_of.push_back(entry->second);
    layout.ranks_of[std::size_t(entry->second)].push_back(other);
  }
  layout.smallest = layout.size;
  for (const auto& ranks : layout.ranks_of)
    layout.smallest = std::min(layout.smallest, int(ranks.size()));
  layout.local = layout.local_rank_of(rank);
  // The lowest rank leads, unless Communicator::choose_leaders() finds a better leader.
  layout.leaders.assign(layout.ranks_of.size(), 0);
  return layout;
}

InterNodeGroup make_inter_node_group(const NodeLayout& layout, Hierarchy hierarchy) {
  InterNodeGroup group;
  if (hierarchy == Hierarchy::flat) {
    group.flat = true;
    group.shard_index = 0;
    group.index = layout.rank;
    for (int rank = 0; rank < layout.size; ++rank) group.peers.push_back(rank);
    return group;
  }
  // Every node must have an owner for each shard, so the smallest node decides how many there are.
  // The further ranks of a larger node only take part in the work inside the node.
  group.leader = hierarchy == Hierarchy::leader;
  group.shards = group.leader ? 1 : layout.smallest;
  // Returns the local rank that owns shard 0 on a node. Leaders differ among nodes.
  const auto first_owner = [&](int node) { return group.leader ? layout.leader_on(node) : 0; };
  group.first = first_owner(layout.node());
  group.shard_index = group.shard_index_of(layout.local_rank());
  if (group.shard_index < 0) return group;
  group.index = layout.node();
  for (int node = 0; node < layout.nodes(); ++node)
    group.peers.push_back(
        layout.ranks_on(node)[std::size_t(first_owner(node) + group.shard_index)]);
  return group;
}

// Returns a digest of which rank owns which shard, so that equal digests mean equal owners.
std::uint64_t digest_owners(const NodeLayout& layout, const InterNodeGroup& group) {
  Fnv1a digest;
  for (int rank = 0; rank < layout.size; ++rank) {
    InterNodeGroup there = group;
    there.first = group.leader ? layout.leader_on(layout.node_of_rank(rank)) : 0;
    digest.add(std::uint64_t(group.flat ? 0 : there.shard_index_of(layout.local_rank_of(rank))));
  }
  return digest.value();
}

// Returns the distance of the buffer's GPU from a NIC. hwloc, which finds it, is slow to start, so
// it is not used for buffers in host memory.
topology::Distance distance_of(const void* buffer) {
  char bus_id[32] = "";
  if (buffer == nullptr) return topology::Distance::unknown;
  const device::Location location = device::locate(buffer);
  const device::Device& device = *location.device;
  if (device.bus_id == nullptr || device.bus_id(location, bus_id, sizeof bus_id) != Status::ok)
    return topology::Distance::unknown;
  topology::Topology machine;
  if (topology::load(machine) != Status::ok) return topology::Distance::unknown;
  return topology::distance_to_nic(machine, bus_id);
}

}  // namespace

// Chooses the leader of each node. Every rank fills in one word and receives those of all ranks, so
// all choose the same leaders.
Status Communicator::choose_leaders(const void* buffer) {
  const auto distance = distance_of(buffer);
  std::vector<std::uint64_t> all(std::size_t(size_), 0);
  all[std::size_t(rank_)] = std::uint64_t(distance);
  SLIMPI_TRY(exchange_.all_max(all));
  for (std::size_t node = 0; node < layout_.ranks_of.size(); ++node) {
    const std::vector<int>& ranks = layout_.ranks_of[node];
    const auto nearest = std::min_element(ranks.begin(), ranks.end(), [&](int a, int b) {
      return all[std::size_t(a)] < all[std::size_t(b)];
    });
    layout_.leaders[node] = int(nearest - ranks.begin());
  }
  const bool leads = layout_.leader_on(layout_.node()) == layout_.local_rank();
  if (leads && distance != topology::Distance::unknown)
    log_once(LogLevel::info, std::string("leads its node: its GPU is nearest to a NIC (") +
                                 topology::to_string(distance) + ")");
  return Status::ok;
}

// Finds the nodes. MPI_Comm_split_type may fail; where MPI has no context id left, it fails on all
// ranks. All ranks then leave the later calls of the communicator to MPI. In the fiber of a
// nonblocking sum they cannot do that together, because they learn of the failure at different
// times, so there only this sum fails. MPI_Comm_split_type also blocks, so a rank inside it never
// learns that another rank has failed.
Status Communicator::find_layout() {
  // Each rank fills in its own key and receives those of all ranks. The last number tells whether
  // some rank has no key.
  std::vector<std::uint64_t> keys(std::size_t(size_) + 1, 0);
  const Status found = find_node_key(api_, exchange_.comm(), config_, &keys[std::size_t(rank_)]);
  keys.back() = found == Status::ok ? 0 : 1;
  SLIMPI_TRY(exchange_.all_max(keys));
  if (keys.back() != 0) {
    if (!Fiber::inside()) enter(Life::unusable);
    return found != Status::ok
               ? found
               : fail(Status::mpi, "another rank could not find the ranks of its machine");
  }
  keys.pop_back();
  layout_ = make_node_layout(rank_, keys);
  return Status::ok;
}

Status Communicator::find_nodes(const void* buffer) {
  if (is_in(Life::laid_out)) return Status::ok;
  // Attachments drop what they derived from the old layout, while it still exists.
  for (const auto& [key, attached] : attachments_) attached->layout_changed();
  const Status found = find_layout();
  // All ranks know that the communicator is unusable, so they close the exchange. After a failed
  // agreement it stays open, because other ranks may still wait there for this rank.
  if (unusable()) exchange_.close();
  SLIMPI_TRY(found);
  if (config_.hierarchy == Hierarchy::leader) SLIMPI_TRY(choose_leaders(buffer));
  if (layout_.nodes() == 1 && Fiber::inside())
    SLIMPI_TRY(nonblocking.compare_before_placed(exchange_));
  exchange_.set_layout(&layout_);
  enter(Life::laid_out);
  return Status::ok;
}

const InterNodeGroup& Communicator::inter_node_group(Hierarchy hierarchy) {
  // Keeps one group for each hierarchy, valid until the options change.
  const auto found = group_.find(hierarchy);
  if (found != group_.end()) return found->second;
  InterNodeGroup group = make_inter_node_group(layout_, hierarchy);
  group.owners = digest_owners(layout_, group);
  return group_.emplace(hierarchy, std::move(group)).first->second;
}

}  // namespace slimpi::comm
