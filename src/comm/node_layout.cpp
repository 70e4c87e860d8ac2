// SPDX-License-Identifier: BSD-3-Clause
#include "comm/node_layout.h"

#include <algorithm>
#include <map>

#include "base/fiber.h"

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
  return with_tiles(format, chunk_of(count, parts, 0, chunk_alignment(format)).count);
}

kernels::Format with_tiles(const kernels::Format& format, std::uint64_t longest) {
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

namespace {
// The lowest rank of `comm` that can share memory with this one.
Status find_lowest_here(const mpi::Api& api, mpi::Comm comm, int* lowest) {
  int rank = 0;
  api.Comm_rank(comm, &rank);
  mpi::Comm here = mpi::abi.comm_null;
  // The key: the split keeps the order of ranks.
  int code = mpi::kSuccess;
  call_blocking([&] {
    code = api.Comm_split_type(comm, mpi::abi.comm_type_shared, rank, mpi::abi.info_null, &here);
  });
  if (code == mpi::kSuccess) code = mpi::first_rank_in(api, here, comm, lowest);
  if (here != mpi::abi.comm_null) api.Comm_free(&here);
  if (code == mpi::kSuccess) return Status::ok;
  return fail(Status::mpi, "finding the ranks of this machine: " + mpi::error_text(api, code));
}
}  // namespace

Status find_node_key(const mpi::Api& api, mpi::Comm comm, std::uint64_t ranks_per_node,
                     std::uint64_t* key) {
  int rank = 0;
  if (ranks_per_node == 0) {
    SLIMPI_TRY(find_lowest_here(api, comm, &rank));
    *key = std::uint64_t(rank);
    return Status::ok;
  }
  // Ranks of MPI_COMM_WORLD: two communicators then agree about who shares a node.
  api.Comm_rank(mpi::has_world(api) ? mpi::abi.comm_world : comm, &rank);
  *key = std::uint64_t(rank) / ranks_per_node;
  return Status::ok;
}

NodeLayout make_node_layout(int rank, std::span<const std::uint64_t> keys) {
  NodeLayout layout;
  layout.rank = rank;
  layout.size = int(keys.size());
  // By key: the number of the node, in the order of the lowest ranks.
  std::map<std::uint64_t, int> numbers;
  for (int other = 0; other < layout.size; ++other) {
    const auto [entry, inserted] =
        numbers.emplace(keys[std::size_t(other)], int(layout.ranks_of.size()));
    if (inserted) layout.ranks_of.emplace_back();
    layout.node_of.push_back(entry->second);
    layout.ranks_of[std::size_t(entry->second)].push_back(other);
  }
  // The lowest rank leads, unless Communicator::choose_leaders finds a better one.
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
  // Every node must have an owner for each shard.
  std::size_t smallest = layout.ranks_of.front().size();
  for (const auto& node : layout.ranks_of) smallest = std::min(smallest, node.size());
  // The further ranks of a larger node own nothing. They only take part in the work inside it.
  group.leader = hierarchy == Hierarchy::leader;
  group.shards = group.leader ? 1 : int(smallest);
  // The local rank that owns shard 0 on a node: leaders differ among nodes.
  const auto first_owner = [&](int node) {
    return group.leader ? layout.leaders[std::size_t(node)] : 0;
  };
  group.first = first_owner(layout.node());
  group.shard_index = group.shard_of(layout.local_rank());
  if (group.shard_index < 0) return group;
  group.index = layout.node();
  for (int node = 0; node < layout.nodes(); ++node)
    group.peers.push_back(
        layout.ranks_of[std::size_t(node)][std::size_t(first_owner(node) + group.shard_index)]);
  return group;
}

}  // namespace slimpi::comm
