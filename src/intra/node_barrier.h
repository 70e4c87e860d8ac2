// SPDX-License-Identifier: BSD-3-Clause
// The barrier of the node-local ranks of a communicator, and what they learn at a barrier: the
// words that the ranks publish, and whether all ranks share a cache.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "comm/exchange.h"
#include "intra/shared_memory.h"

namespace slimpi::intra {

// Measures whether all node-local ranks share a cache with this rank, by the time it takes to read
// what a node-local rank has just written. The operating system cannot tell, because ranks that are
// not bound to cores move, and a virtual machine does not know the real caches. The result may
// differ between ranks, since only the speed of copies depends on it.
class CacheLocality {
 public:
  // `me` is this rank's local rank, of `size`.
  CacheLocality(int size, int me);

  // The bytes of a rank's probe lines, which are shared cache lines that the rank writes and
  // another rank reads.
  static constexpr std::size_t kProbeBytes = NodeSegment::kProbeBytes;

  // Called at every barrier; returns whether to probe there. If so, every rank writes its probe
  // lines before the barrier, and afterwards reads those of one node-local rank. `bytes` is the
  // number of bytes that passed through a message buffer since the last barrier, the same on all
  // ranks. Returns true until every node-local rank was probed twice, and rarely from then on, so
  // that the probes cost next to nothing.
  bool due(std::uint64_t bytes);
  void write_probe_lines(std::byte* mine) const;

  // Returns the node-local rank to probe next, which is a different one on every rank.
  int target() const;
  // Reads the probe lines of target(), and records how long that took.
  void probe(const std::byte* probe_lines);
  void record(std::uint64_t nanoseconds);

  // Returns whether some node-local rank shares no cache with this rank. Two probes of a rank in
  // sequence must agree on that, because an interruption may slow down a single one.
  bool cross_cache() const { return cross_cache_; }

 private:
  struct Peer {
    bool last = false, cross_cache = false;
  };
  std::vector<Peer> peers_;  // element i: the rank i + 1 positions after this one
  int me_;
  std::size_t next_ = 0;
  std::uint64_t probes_ = 0, bytes_ = 0;  // bytes since the last probe
  bool cross_cache_ = false;
};

// The barrier in the memory that the node-local ranks of a communicator share, where each rank has
// a data area and one 64-bit word that all can read. A barrier costs one store and a few loads.
class NodeBarrier {
 public:
  // `first` is the rank, in the communicator, of the node's first rank.
  NodeBarrier(std::unique_ptr<NodeSegment> segment, int first)
      : segment_(std::move(segment)), first_(first), locality_(size(), local_rank()) {}
  ~NodeBarrier() { NodeSegment::leave(std::move(segment_)); }
  NodeBarrier(const NodeBarrier&) = delete;
  NodeBarrier& operator=(const NodeBarrier&) = delete;

  int size() const { return segment_->ranks(); }
  int local_rank() const { return segment_->me(); }
  NodeSegment& segment() const { return *segment_; }

  // Waits until every rank of the node has called barrier() as often as this rank. What a rank
  // wrote to its data area before is then visible to the others. MPI makes progress meanwhile,
  // because another rank may wait for a message. Fails if a rank reports a failure. `bytes` is an
  // upper bound of what a rank wrote to its data area since the last barrier, the same on all
  // ranks.
  Status barrier(comm::Exchange& exchange, std::uint64_t bytes = 0);

  // Returns whether some rank of the node shares no cache with this rank at present. If so, this
  // rank should write data for other ranks past its caches. The result may differ between ranks.
  bool cross_cache() const { return locality_.cross_cache(); }

  // publish() sets this rank's word (transports.h has its fields), at most once between two
  // barriers. After the next barrier, published() returns the bitwise AND (`all`) and OR (`any`) of
  // the words of the node's ranks. Where both are equal in the bits of a field, all ranks have
  // published the same field.
  struct Published {
    std::uint64_t all, any;
    bool alike(std::uint64_t field) const { return ((all ^ any) & field) == 0; }
  };
  void publish(std::uint64_t word);
  Published published() const;
  std::uint64_t word(int local) const;  // of one rank; valid when published() is

  // Publishes *flag, passes a barrier, and sets *flag to whether it was true on all ranks of the
  // node.
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
