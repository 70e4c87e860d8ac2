// SPDX-License-Identifier: BSD-3-Clause
// A communicator's view of the shared-memory segment of its node: a data area of each rank that all
// of them can read, a word of each rank, and a barrier that costs one store and a few loads. Ranks
// are node-local ranks of the communicator. The segment, and what belongs to its lease, is shared
// with other communicators of the same processes. Barriers and words are this communicator's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "comm/exchange.h"
#include "intra/cache_locality.h"
#include "intra/segment_opening.h"

namespace slimpi::intra {

class SharedSegment {
 public:
  explicit SharedSegment(Statistics& statistics) : statistics_(statistics) {}
  ~SharedSegment() { leave_segment(&place_); }
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  // Collective over the communicator. *ready is the same on all its ranks, and false where the
  // ranks of some node cannot share memory.
  Status open(comm::Exchange& exchange, const comm::NodeLayout& layout, Intra intra, bool* ready);

  int size() const { return int(place_.process_of.size()); }
  int local_rank() const { return me_; }

  // The segment, and the process number of a node-local rank there. All communicators of the
  // segment use that number.
  NodeSegment& segment() const { return *place_.segment; }
  int process_of(int local) const { return place_.process_of[std::size_t(local)]; }

  // The data area of a rank, aligned to 64 bytes. Only that rank writes it. Needs the lease.
  float* buffer(int local) const { return segment().data(process_of(local)); }

  // For a communicator on one node: says which call this rank is in, and its count, also where it
  // leaves the call to MPI. A rank that waits in a barrier of the same call for one with another
  // count fails.
  void enter(std::uint64_t call, std::uint64_t count);

  // Returns when every rank of the node has called it as often as this one. What a rank wrote
  // before is visible to the others after it. MPI makes progress meanwhile, because another rank
  // may wait for a message. Fails when a rank reports that it failed. `bytes`: how much of a rank's
  // data area was written since the last barrier, at most; the same on all ranks of the node.
  Status barrier(comm::Exchange& exchange, std::uint64_t bytes = 0);

  // Some rank of the node shares no cache with this one at present, so data for other ranks should
  // arrive faster through memory. Measured by this rank; ranks may differ.
  bool cross_cache() const { return locality_->cross_cache(); }

  // Publishing: at most once between two barriers, a rank sets a word with the fields of
  // published_word.h. published() returns, after the next barrier, the words of all ranks of the
  // node, joined by "and" and by "or".
  struct Published {
    std::uint64_t all, any;
    bool alike(std::uint64_t field) const { return ((all ^ any) & field) == 0; }
  };
  void publish(std::uint64_t word);
  Published published() const;
  std::uint64_t word(int local) const;  // of one rank, as published() joins it

  // Whether SLIMPI_INTRA and the kernel let the ranks of every node read each other's memory. The
  // same on all ranks of the communicator.
  bool peers_readable() const { return peers_readable_; }
  PeerNote& peer_note(int local) const { return segment().peer_note(process_of(local)); }

  // A note of each process of the segment. Its process writes it; the others read it after a
  // barrier. Needs the lease.
  static constexpr std::size_t kNoteBytes = NodeSegment::kNoteBytes;
  std::byte* note(int process) const { return segment().note(process); }

 private:
  struct Line;
  std::byte* probe_lines(int local) const { return segment().probe_lines(process_of(local)); }

  Status compare_entered(std::size_t local) const;

  Statistics& statistics_;
  SegmentPlace place_;
  std::vector<Line*> lines_;  // by local rank
  int me_ = 0;
  int first_ = 0;  // the node's first rank, in the communicator
  bool peers_readable_ = false;
  std::uint64_t barriers_ = 0, publications_ = 0;
  std::optional<CacheLocality> locality_;  // set by open()
};

// The lease of the segment for one call, in this process. It ends with the object. Until then the
// call may use the data area if all ranks of the node have published that they hold it.
class SegmentLease {
 public:
  explicit SegmentLease(SharedSegment& shared)
      : segment_(shared.segment()), held_(segment_.try_lease()) {}
  ~SegmentLease() { (void)end(Status::ok); }
  SegmentLease(SegmentLease&& other) noexcept
      : segment_(other.segment_), held_(std::exchange(other.held_, false)) {}
  SegmentLease(const SegmentLease&) = delete;
  SegmentLease& operator=(const SegmentLease&) = delete;

  bool held() const { return held_; }

  // `status`: how the call ended. After a failure no call gets the lease again. Returns `status`.
  Status end(Status status) {
    if (held_) segment_.end_lease(status != Status::ok);
    held_ = false;
    return status;
  }

 private:
  NodeSegment& segment_;
  bool held_;
};

}  // namespace slimpi::intra
