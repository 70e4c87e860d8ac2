// SPDX-License-Identifier: BSD-3-Clause
#include "comm/node_layout.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/fiber.h"
#include "base/hash.h"
#include "comm/communicator.h"
#include "observe/log.h"
#include "topology/topology.h"

namespace slimpi::comm {

Range chunk_of(std::uint64_t count, int parts, int index, std::uint64_t align) {
  // All ranks compute the same boundaries, because count, parts and align are the same on all of
  // them.
  const std::uint64_t blocks = (count + align - 1) / align;
  const std::uint64_t each = blocks / std::uint64_t(parts), more = blocks % std::uint64_t(parts);
  const std::uint64_t i = std::uint64_t(index);
  const std::uint64_t begin = std::min(count, (i * each + std::min(i, more)) * align);
  const std::uint64_t end = std::min(count, ((i + 1) * each + std::min(i + 1, more)) * align);
  return {begin, end - begin};
}

bool one_bucket(const kernels::Format& format) {
  return format.codec == kernels::Codec::quantized && format.bucket == 0;
}

std::uint64_t chunk_alignment(const kernels::Format& format) {
  if (format.codec == kernels::Codec::packed) return kernels::kPackedBucket;
  if (format.codec != kernels::Codec::quantized) return 64;
  return one_bucket(format) ? 1 : format.bucket;
}

std::uint64_t segment_alignment(const kernels::Format& format) {
  return format.codec == kernels::Codec::packed ? format.bucket : chunk_alignment(format);
}

kernels::Format with_tiles(const kernels::Format& format, std::uint64_t count, int parts) {
  return with_tiles_for_longest(format, chunk_of(count, parts, 0, chunk_alignment(format)).count);
}

kernels::Format with_tiles_for_longest(const kernels::Format& format, std::uint64_t longest) {
  if (format.codec != kernels::Codec::packed) return format;
  kernels::Format result = format;
  const std::uint64_t bucket = kernels::kPackedBucket;
  longest = std::max(bucket, longest);
  const std::uint64_t tiles = (longest + format.bucket - 1) / format.bucket;
  const std::uint64_t buckets = (longest + bucket - 1) / bucket;
  result.bucket = std::uint32_t((buckets + tiles - 1) / tiles * bucket);
  return result;
}

int NodeLayout::local_rank_of(int other) const {
  const std::vector<int>& theirs = ranks_of[std::size_t(node_of[std::size_t(other)])];
  return int(std::find(theirs.begin(), theirs.end(), other) - theirs.begin());
}

std::uint64_t NodeLayout::part_of(std::uint64_t bytes, Hierarchy hierarchy) const {
  const bool flat = hierarchy == Hierarchy::flat, leader = hierarchy == Hierarchy::leader;
  const int owners = leader ? 1 : smallest;
  const int owner = leader ? local - leaders[std::size_t(node())] : local;
  if (!flat && (owner < 0 || owner >= owners)) return 0;
  const auto parts = std::uint64_t(flat ? size : nodes() * owners);
  const auto part = std::uint64_t(flat ? rank : node() * owners + owner);
  return bytes / parts + (part < bytes % parts ? 1 : 0);
}

namespace {
// Finds the lowest rank of `comm` that can share memory with this rank.
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

// Finds a key of this rank's node, equal on the ranks of one node and nowhere else. With
// ranks_per_node = k, every k consecutive ranks of MPI_COMM_WORLD are one node (of `comm` if
// MPI_COMM_WORLD does not exist). With 0, the ranks that can share memory are one node:
// MPI_Comm_split_type decides, which is collective over `comm` and blocks.
Status find_node_key(const mpi::Api& api, mpi::Comm comm, std::uint64_t ranks_per_node,
                     std::uint64_t* key) {
  int rank = 0;
  if (ranks_per_node == 0) {
    SLIMPI_TRY(find_lowest_here(api, comm, &rank));
    *key = std::uint64_t(rank);
    return Status::ok;
  }
  // Ranks of MPI_COMM_WORLD are used, so that two communicators agree about who shares a node.
  api.Comm_rank(mpi::has_world(api) ? mpi::abi.comm_world : comm, &rank);
  *key = std::uint64_t(rank) / ranks_per_node;
  return Status::ok;
}

// Returns the layout for these keys, one for each rank.
NodeLayout make_node_layout(int rank, std::span<const std::uint64_t> keys) {
  NodeLayout layout;
  layout.rank = rank;
  layout.size = int(keys.size());
  // The number of each node, by key; nodes are numbered in the order of their lowest ranks.
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
  // The lowest rank leads, unless Communicator::choose_leaders finds a better leader.
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
  // Every node must have an owner for each shard. The further ranks of a larger node own nothing
  // and only take part in the work inside the node.
  group.leader = hierarchy == Hierarchy::leader;
  group.shards = group.leader ? 1 : layout.smallest;
  // Returns the local rank that owns shard 0 on a node: leaders differ among nodes.
  const auto first_owner = [&](int node) {
    return group.leader ? layout.leaders[std::size_t(node)] : 0;
  };
  group.first = first_owner(layout.node());
  group.shard_index = group.shard_index_of(layout.local_rank());
  if (group.shard_index < 0) return group;
  group.index = layout.node();
  for (int node = 0; node < layout.nodes(); ++node)
    group.peers.push_back(
        layout.ranks_of[std::size_t(node)][std::size_t(first_owner(node) + group.shard_index)]);
  return group;
}

// Returns a digest that is equal for hierarchies in which each rank owns the same shard.
std::uint64_t digest_owners(const NodeLayout& layout, const InterNodeGroup& group) {
  Fnv1a digest;
  for (int rank = 0; rank < layout.size; ++rank) {
    InterNodeGroup there = group;
    there.first = group.leader ? layout.leaders[std::size_t(layout.node_of[std::size_t(rank)])] : 0;
    digest.add(std::uint64_t(group.flat ? 0 : there.shard_index_of(layout.local_rank_of(rank))));
  }
  return digest.value();
}

// Returns the distance of the buffer's GPU from a NIC. hwloc is slow to start, so only programs
// with device buffers use it.
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

// Chooses the leader of each node. Every rank fills in one word and gets the words of all ranks, so
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
  const bool leads = layout_.leaders[std::size_t(layout_.node())] == layout_.local_rank();
  if (leads && distance != topology::Distance::unknown)
    log_once(LogLevel::info, std::string("leads its node: its GPU is nearest to a NIC (") +
                                 topology::to_string(distance) + ")");
  return Status::ok;
}

// Finds the nodes. MPI_Comm_split_type blocks: a rank in it never learns that another rank has
// failed. In the fiber of a nonblocking sum a failure fails the sum and is no reason to leave calls
// to MPI: the ranks know of it at different times.
Status Communicator::find_layout() {
  std::vector<std::uint64_t> keys(std::size_t(size_), 0);
  const Status found =
      find_node_key(api_, exchange_.comm(), config_.ranks_per_node, &keys[std::size_t(rank_)]);
  // MPI has no context id left, and fails on all ranks here.
  if (found != Status::ok && !Fiber::inside()) enter(Life::unusable);
  SLIMPI_TRY(found);
  // Each rank has filled in its own key and gets the keys of all ranks.
  SLIMPI_TRY(exchange_.all_max(keys));
  layout_ = make_node_layout(rank_, keys);
  return Status::ok;
}

Status Communicator::find_nodes(const void* buffer) {
  if (is_in(Life::laid_out)) return Status::ok;
  // Attachments drop what they derived from the old layout, before there is a new layout.
  for (const auto& [key, attached] : attachments_) attached->layout_changed();
  const Status found = find_layout();
  // A failed agreement is no common decision and does not close the exchange: other ranks may still
  // wait in the agreement for this rank.
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
  // There is at most one group for each hierarchy. A reference is valid until the options change.
  const auto found = group_.find(hierarchy);
  if (found != group_.end()) return found->second;
  InterNodeGroup group = make_inter_node_group(layout_, hierarchy);
  group.owners = digest_owners(layout_, group);
  return group_.emplace(hierarchy, std::move(group)).first->second;
}

Scatter::Scatter(const NodeLayout& layout, const InterNodeGroup& group,
                 std::pmr::vector<Range> its_blocks, std::pmr::memory_resource* memory)
    : blocks(std::move(its_blocks)),
      places(blocks.size(), memory),
      shards(std::size_t(group.shards), memory),
      chunks(memory),
      node(std::size_t(group.shards), memory) {
  if (group.flat) {
    for (std::size_t rank = 0; rank < blocks.size(); ++rank) places[rank] = blocks[rank].first;
    chunks.assign(blocks.begin(), blocks.end());
    shards[0] = {0, blocks.back().first + blocks.back().count};
    node[0] = chunks[std::size_t(group.index)];
    return;
  }
  if (group.shard_index >= 0) chunks.resize(std::size_t(layout.nodes()));
  std::uint64_t next = 0;
  for (int shard = 0; shard < group.shards; ++shard) {
    const std::uint64_t first_of_shard = next;
    for (int other = 0; other < layout.nodes(); ++other) {
      const std::vector<int>& ranks = layout.ranks_of[std::size_t(other)];
      const std::uint64_t first = next;
      for (std::size_t local = std::size_t(shard); local < ranks.size();
           local += std::size_t(group.shards)) {
        const Range& block = blocks[std::size_t(ranks[local])];
        places[std::size_t(ranks[local])] = next;
        if (next != block.first && block.count != 0) in_order = false;
        next += block.count;
      }
      const Range chunk{first, next - first};
      if (shard == group.shard_index) chunks[std::size_t(other)] = chunk;
      if (other == layout.node()) node[std::size_t(shard)] = chunk;
    }
    shards[std::size_t(shard)] = {first_of_shard, next - first_of_shard};
  }
  shared = layout.node_ranks().size() > std::size_t(group.shards);
}

std::uint64_t Scatter::longest() const {
  std::uint64_t most = 0;
  for (const Range& chunk : chunks) most = std::max(most, chunk.count);
  return most;
}

}  // namespace slimpi::comm
