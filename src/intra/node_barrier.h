// SPDX-License-Identifier: BSD-3-Clause
// The barrier of the node-local ranks of a communicator, and what they learn at it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "comm/exchange.h"
#include "intra/shared_memory.h"

namespace slimpi::intra {

// Whether all node-local ranks share a cache with this rank. This is measured: the time to read
// what a node-local rank has just written. The system is not asked, because ranks that are not
// bound to cores move, and a virtual machine does not know the real caches. The result belongs to
// this rank and may differ between ranks; only speed depends on it.
class CacheLocality {
 public:
  // For local rank `me` of `size`.
  CacheLocality(int size, int me);

  // Bytes of shared memory that each rank writes and the others read.
  static constexpr std::size_t kProbeBytes = NodeSegment::kProbeBytes;

  // Whether to probe at this barrier. Call it at every barrier, on all ranks with the same `bytes`:
  // those that passed through a message buffer since the last barrier. True: every rank writes its
  // probe lines before the barrier, and reads those of a node-local rank after it. It is true until
  // every node-local rank was probed twice, and later only as often as costs next to nothing.
  bool due(std::uint64_t bytes);
  void write_probe_lines(std::byte* mine) const;

  // The node-local rank to probe next; a different one for every rank.
  int target() const;
  // Reads that rank's probe lines and records the time.
  void probe(const std::byte* probe_lines);
  void record(std::uint64_t nanoseconds);

  // Some node-local rank shares no cache with this one, by the last two probes of it. One slow
  // probe alone may be an interruption.
  bool cross_cache() const { return cross_cache_; }

 private:
  struct Peer {
    bool last = false, cross_cache = false;
  };
  std::vector<Peer> peers_;  // index: distance in local ranks after this one, minus 1
  int me_;
  std::size_t next_ = 0;
  std::uint64_t probes_ = 0, bytes_ = 0;  // bytes since the last probe
  bool cross_cache_ = false;
};

// The use of the memory that the node-local ranks of a communicator share: a data area of
// each rank that all of them can read, a word of each rank, and a barrier that costs one store and
// a few loads.
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

  // Returns when every rank of the node has called it as often as this one. What a rank wrote
  // before is visible to the others after it. MPI makes progress meanwhile, because another rank
  // may wait for a message. Fails when a rank reports that it failed. `bytes`: how much of a rank's
  // data area was written since the last barrier, at most; the same on all ranks of the node.
  Status barrier(comm::Exchange& exchange, std::uint64_t bytes = 0);

  // Some rank of the node shares no cache with this one at present, so data for other ranks should
  // arrive faster through memory. Measured by this rank; ranks may differ.
  bool cross_cache() const { return locality_.cross_cache(); }

  // Publishing: at most once between two barriers, a rank sets a word, such as one with the fields
  // of transports.h. published() returns, after the next barrier, the words of all ranks of the
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

  std::unique_ptr<NodeSegment> segment_;
  const int first_;
  std::uint64_t barriers_ = 0, publications_ = 0;
  CacheLocality locality_;
};

}  // namespace slimpi::intra
