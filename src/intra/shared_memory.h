// SPDX-License-Identifier: BSD-3-Clause
// The memory that the node-local ranks of one communicator share, and what belongs to it. Each rank
// has a region: a cache line for barriers and published words, probe lines, notes, and a data area
// for message buffers. Only that rank writes it.
//
// A communicator has a segment of its own, so calls of different communicators never meet in one.
// A region takes 1.5 MiB, and a process has few of them: as many as slimpi serves communicators
// (mpi/internal_comm.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/round_up.h"
#include "base/shared_file.h"
#include "comm/exchange.h"
#include "device/device.h"
#include "intra/buffer_ring.h"
#include "intra/cache_locality.h"
#include "observe/statistics.h"
#include "options/option_types.h"

namespace slimpi::intra {

class NcclGroup;

class NodeSegment {
 public:
  static constexpr std::size_t kLine = 64;            // bytes of a cache line
  static constexpr std::uint64_t kBlock = 128 << 10;  // floats of a block in a data area, at most
  static constexpr std::size_t kNoteBytes = 384;

  // Describes a segment of `ranks` ranks, of which this one is number `me`; `block`: floats of the
  // longest message buffer. Maps nothing yet.
  NodeSegment(int ranks, int me, std::uint64_t block, Statistics& statistics);
  ~NodeSegment();
  NodeSegment(const NodeSegment&) = delete;
  NodeSegment& operator=(const NodeSegment&) = delete;

  // Bytes of the whole segment.
  std::size_t bytes() const { return kHeaderBytes + std::size_t(ranks_) * region_bytes(); }

  // Maps the file and reserves memory for this rank's region, and for the header if `first`. All
  // bytes are 0.
  Status map(SharedFile& file, bool first);

  // Maps every page, so that no call pays for page faults. All ranks have reserved their memory
  // before.
  void touch() const;

  int ranks() const { return ranks_; }
  int me() const { return me_; }

  std::byte* line(int local) const { return region(local); }
  std::byte* probe_lines(int local) const { return region(local) + kPage; }
  // A note of each rank. That rank writes it; the others read it after a barrier.
  std::byte* note(int local) const { return probe_lines(local) + CacheLocality::kProbeBytes; }
  // The data area of a rank, aligned to 64 bytes. Only that rank writes it.
  float* data(int local) const { return reinterpret_cast<float*>(region(local) + kFrontBytes); }

  // The message buffers in the data area; the same ring on all ranks.
  BufferRing ring;

  // Pins the segment for copies to and from memory at the location, once for each; where that is
  // not possible, copies are slow and block.
  void pin(const device::Location& location);

  // How the ranks exchange device memory. Set when the segment is opened.
  std::unique_ptr<NcclGroup> nccl;

  // Ends this rank's use of a segment. With an NCCL communicator it waits briefly for the other
  // ranks. If one has not left by then, the segment is kept until a later leave().
  static void leave(std::unique_ptr<NodeSegment> segment);

 private:
  struct Header;
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kHeaderBytes = kPage;
  static constexpr std::size_t kFrontBytes = kPage + CacheLocality::kProbeBytes + kPage;
  static_assert(kNoteBytes <= kPage);
  std::size_t region_bytes() const {
    return round_up(kFrontBytes + ring.floats() * sizeof(float), kPage);
  }
  std::byte* region(int local) const {
    return memory_ + kHeaderBytes + std::size_t(local) * region_bytes();
  }
  Header& header() const { return *reinterpret_cast<Header*>(memory_); }
  bool gone() const;  // whether all ranks have left
  bool close_nccl();

  const int ranks_, me_;
  Statistics& statistics_;
  std::byte* memory_ = nullptr;
  std::vector<device::Location> pinned_for_;  // pin() was called for them
};

// Floats of one rank's shard in a block, at least: one cache line.
inline constexpr std::uint64_t kLeastPiece = 16;

// How the node-local ranks of a communicator get a segment (shared_memory_open.cpp), with shorter
// blocks where memory is short. Collective over the communicator. *segment is set on all its ranks
// or on none: it is null where the ranks of some node cannot share memory.
Status open_segment(comm::Exchange& exchange, const comm::NodeLayout& layout, Intra intra,
                    Statistics& statistics, std::unique_ptr<NodeSegment>* segment);

}  // namespace slimpi::intra
