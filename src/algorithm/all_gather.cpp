// SPDX-License-Identifier: BSD-3-Clause
// An all-gather of the program, which is the second phase of an allreduce alone. Each block is
// encoded once, and all ranks decode the same bytes straight to the block's place in the result.
//
// The owners of shards send the blocks of their node. An exchange between nodes carries one block
// per owner, so a node with more ranks than shards needs several exchanges, one for each layer of
// ranks: layer n consists of the node's local ranks n * shards to (n + 1) * shards - 1.
#include <algorithm>
#include <memory_resource>
#include <span>
#include <vector>

#include "algorithm/hierarchical.h"
#include "algorithm/node_frame.h"
#include "comm/communicator.h"
#include "comm/scatter.h"
#include "inter/schedule.h"
#include "intra/intra_node.h"

namespace slimpi::algorithm {

namespace {

class AllGather {
 public:
  explicit AllGather(comm::Call& call)
      : call_(call),
        gather_(*call.gather),
        layout_(call.communicator.layout()),
        group_(call.communicator.inter_node_group(call.plan.hierarchy)) {
    for (const std::vector<int>& ranks : layout_.ranks_of)
      layers_ = std::max(layers_, (int(ranks.size()) - 1) / group_.shards + 1);
  }
  ~AllGather() { call_.shards = {}; }
  AllGather(const AllGather&) = delete;
  AllGather& operator=(const AllGather&) = delete;

  Status run();

 private:
  using Ranges = std::pmr::vector<comm::Range>;

  // Returns the rank of the node whose block the shard's owner sends in this layer; -1 if there is
  // none.
  int rank_at(int node, int shard, int layer) const {
    const std::vector<int>& ranks = layout_.ranks_on(node);
    const auto local = std::size_t(shard) + std::size_t(layer) * std::size_t(group_.shards);
    return local < ranks.size() ? ranks[local] : -1;
  }
  Ranges ranges(std::size_t count) const { return Ranges(count, &call_.scratch.objects); }
  Status pass(const Ranges& shards, const comm::InterNodeGroup& group);
  Status hand_over();
  Status exchange(const Ranges& chunks, int own);
  Status exchange_layer(int layer);
  Status share();

  comm::Call& call_;
  const comm::Gather& gather_;
  const comm::NodeLayout& layout_;
  const comm::InterNodeGroup& group_;
  int layers_ = 1;
};

// Sends parts of the result from the owners that have them to all ranks of the node. `shards` has
// one range per owner.
Status AllGather::pass(const Ranges& shards, const comm::InterNodeGroup& group) {
  if (comm::longest_of(shards) == 0) return Status::ok;
  call_.shards = shards;
  return intra::intra_all_gather(call_, group);
}

// Brings the blocks of ranks that own no shard to the owners, which encode them. The reduce-scatter
// at the beginning has no elements; it only chooses the transport and compares the calls of the
// ranks of this node.
Status AllGather::hand_over() {
  const Ranges none = ranges(std::size_t(group_.shards));
  call_.shards = none;
  SLIMPI_TRY(intra::intra_reduce_scatter(call_, group_));
  const std::vector<int>& ranks = layout_.node_ranks();
  Ranges blocks = ranges(ranks.size());
  for (std::size_t local = 0; local < ranks.size(); ++local)
    if (group_.shard_index_of(int(local)) < 0) blocks[local] = gather_.place(ranks[local]);
  const comm::Range own = blocks[std::size_t(layout_.local_rank())];
  if (float* const place = call_.out + own.first; own.count != 0 && place != call_.in)
    SLIMPI_TRY(call_.device.copy(place, call_.in, own.count * sizeof(float), call_.stream));
  comm::InterNodeGroup everyone;
  everyone.shards = int(ranks.size());
  everyone.shard_index = layout_.local_rank();
  return pass(blocks, everyone);
}

// Runs one exchange between nodes, of one chunk per member of the group. `own` is the rank whose
// block this rank sends; -1 if it sends none.
Status AllGather::exchange(const Ranges& chunks, int own) {
  if (comm::longest_of(chunks) == 0) return Status::ok;
  const float* const in =
      own < 0 || own == layout_.rank ? call_.in : call_.out + gather_.place(own).first;
  return inter::run_gather(call_, group_, chunks, in);
}

Status AllGather::exchange_layer(int layer) {
  Ranges chunks = ranges(std::size_t(layout_.nodes()));
  for (int node = 0; node < layout_.nodes(); ++node)
    if (const int rank = rank_at(node, group_.shard_index, layer); rank >= 0)
      chunks[std::size_t(node)] = gather_.blocks[std::size_t(rank)];
  return exchange(chunks, rank_at(layout_.node(), group_.shard_index, layer));
}

// Passes the decoded blocks of all nodes on to the other ranks of this node.
Status AllGather::share() {
  Ranges shards = ranges(std::size_t(group_.shards));
  for (int node = 0; node < layout_.nodes(); ++node)
    for (int layer = 0; layer < layers_; ++layer) {
      for (int shard = 0; shard < group_.shards; ++shard) {
        const int rank = rank_at(node, shard, layer);
        shards[std::size_t(shard)] = rank < 0 ? comm::Range{} : gather_.place(rank);
      }
      SLIMPI_TRY(pass(shards, group_));
    }
  return Status::ok;
}

Status AllGather::run() {
  if (group_.flat) return exchange(gather_.blocks, layout_.rank);
  const bool inside = works_in_node(call_);
  if (inside) SLIMPI_TRY(hand_over());
  for (int layer = 0; group_.shard_index >= 0 && layer < layers_; ++layer)
    SLIMPI_TRY(exchange_layer(layer));
  return inside ? share() : Status::ok;
}

}  // namespace

Status run_all_gather(comm::Call& call) {
  return AllGather(call).run();
}

Status reserve_all_gather(const comm::Call& call) {
  const comm::InterNodeGroup& group = call.communicator.inter_node_group(call.plan.hierarchy);
  if (group.shard_index >= 0)
    SLIMPI_TRY(call.reserve_messages(inter::gather_need(call, group).bytes));
  return intra::reserve_node_sum(call, group);
}

}  // namespace slimpi::algorithm
