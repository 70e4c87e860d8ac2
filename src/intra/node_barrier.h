// SPDX-License-Identifier: BSD-3-Clause
// What the node-local ranks of a communicator do with the memory that they share: a data area of
// each rank that all of them can read, a word of each rank, and a barrier that costs one store and
// a few loads.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>

#include "comm/exchange.h"
#include "intra/cache_locality.h"
#include "intra/shared_memory.h"

namespace slimpi::intra {

class NodeBarrier {
 public:
  // `first`: the node's first rank, in the communicator.
  NodeBarrier(std::unique_ptr<NodeSegment> segment, int first)
      : segment_(std::move(segment)), first_(first), locality_(size(), local_rank()) {}
  ~NodeBarrier() { NodeSegment::leave(std::move(segment_)); }
  NodeBarrier(const NodeBarrier&) = delete;
  NodeBarrier& operator=(const NodeBarrier&) = delete;

  int size() const { return segment_->ranks(); }
  int local_rank() const { return segment_->me(); }
  NodeSegment& segment() const { return *segment_; }

  // For a communicator on one node: says which call this rank is in, and what it sums, also where
  // it leaves the call to MPI. A rank that waits in a barrier of the same call for one that sums
  // something else fails.
  void enter(const ActiveCall& call);

  // Returns when every rank of the node has called it as often as this one. What a rank wrote
  // before is visible to the others after it. MPI makes progress meanwhile, because another rank
  // may wait for a message. Fails when a rank reports that it failed. `bytes`: how much of a rank's
  // data area was written since the last barrier, at most; the same on all ranks of the node.
  Status barrier(comm::Exchange& exchange, std::uint64_t bytes = 0);

  // Some rank of the node shares no cache with this one at present, so data for other ranks should
  // arrive faster through memory. Measured by this rank; ranks may differ.
  bool cross_cache() const { return locality_.cross_cache(); }

  // Publishing: at most once between two barriers, a rank sets a word, such as one with the fields
  // of pass_decision.h. published() returns, after the next barrier, the words of all ranks of the
  // node, joined by "and" and by "or".
  struct Published {
    std::uint64_t all, any;
    bool alike(std::uint64_t field) const { return ((all ^ any) & field) == 0; }
  };
  void publish(std::uint64_t word);
  Published published() const;
  std::uint64_t word(int local) const;  // of one rank, as published() joins it

  // Publishes, and passes a barrier: *flag becomes whether it is true on all ranks of the node.
  Status all_true(comm::Exchange& exchange, bool* flag);

 private:
  struct Line;
  Line& line(int local) const;
  Status compare_entered(int local) const;

  std::unique_ptr<NodeSegment> segment_;
  const int first_;
  std::uint64_t barriers_ = 0, publications_ = 0;
  CacheLocality locality_;
};

}  // namespace slimpi::intra
