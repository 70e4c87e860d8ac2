// SPDX-License-Identifier: BSD-3-Clause
// The memory that the node-local ranks of one communicator share.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/round_up.h"
#include "base/shared_file.h"
#include "comm/exchange.h"
#include "device/device.h"
#include "observe/statistics.h"
#include "options/option_types.h"

namespace slimpi::intra {

class NcclGroup;

// The message buffers of one process, in a ring, where each block of each call takes the next
// buffer. All ranks of the node count the same calls, so a block has the same place on all of them.
//
// A call with short blocks uses short buffers, so that many calls pass before the same memory is
// written again. By then it has left the caches of the core that read it, and writing is faster
// than while another core still has the cache line. A call whose blocks are longer than a quarter
// of the longest buffer uses the longest buffers: short ones would gain little if the calls follow
// one another, and lose if other work fills the caches in between (docs/DESIGN.md).
//
// Lengths and places (the index of a buffer's first float) are in floats. A length is a power of
// two, and a place is a multiple of the length, so kDepth successive buffers never overlap.
class BufferRing {
 public:
  static constexpr int kDepth = 3;  // blocks in flight

  // `longest` is the length of the longest buffer, a power of two that is at least kShortest.
  explicit BufferRing(std::uint64_t longest) : longest_(longest) {}

  std::uint64_t longest() const { return longest_; }
  std::uint64_t floats() const { return kDepth * longest_; }

  // The buffers of one call.
  class Buffers {
   public:
    Buffers() = default;
    std::uint64_t place(std::uint64_t block) const { return (first_ + block * length_) % floats_; }

   private:
    friend class BufferRing;
    Buffers(std::uint64_t first, std::uint64_t length, std::uint64_t floats)
        : first_(first), length_(length), floats_(floats) {}
    std::uint64_t first_ = 0, length_ = 0, floats_ = 1;
  };

  // Returns the buffers for a call whose blocks have at most `block` floats, without moving the
  // position in the ring.
  Buffers next(std::uint64_t block) const {
    const bool is_long = block > longest_ / 4;
    const std::uint64_t length = is_long ? longest_ : std::max(std::bit_ceil(block), kShortest);
    return {round_up(passed_, length), length, floats()};
  }

  // Moves the position in the ring past the `blocks` buffers that the call has used, and past one
  // more if these are the longest buffers: consecutive calls with two long blocks then use the same
  // two of the three buffers, and the third takes no room in the caches.
  void pass(const Buffers& used, std::uint64_t blocks) {
    passed_ = used.first_ + (blocks + (used.length_ == longest_ ? 1 : 0)) * used.length_;
  }

 private:
  static constexpr std::uint64_t kShortest = 1 << 10;

  std::uint64_t longest_;
  std::uint64_t passed_ = 0;  // floats of all buffers used so far; place() wraps around
};

// The memory that the node-local ranks of one communicator share, and the objects that belong to
// it. Each rank has a region that only it writes: a cache line for barriers and published words,
// probe lines (CacheLocality), a note for NCCL, and a data area for message buffers.
//
// Each communicator has its own segment, so calls of different communicators never share memory. A
// region takes 1.5 MiB. A process has one region for each communicator that slimpi serves; there
// are only few of these (mpi/internal_comm.h).
class NodeSegment {
 public:
  static constexpr std::size_t kLine = 64;            // bytes of a cache line
  static constexpr std::uint64_t kBlock = 128 << 10;  // the most floats of a block in a data area
  static constexpr std::size_t kNoteBytes = 384;
  static constexpr std::size_t kProbeBytes = 4096;  // of probe lines, see CacheLocality

  // Describes a segment of `ranks` ranks, in which this rank has the number `me`. `block` is the
  // length of the longest message buffer, in floats. Maps nothing yet.
  NodeSegment(int ranks, int me, std::uint64_t block, Statistics& statistics);
  ~NodeSegment();
  NodeSegment(const NodeSegment&) = delete;
  NodeSegment& operator=(const NodeSegment&) = delete;

  // Returns the bytes of the whole segment.
  std::size_t bytes() const { return kHeaderBytes + std::size_t(ranks_) * region_bytes(); }

  // Maps the file and reserves memory, zeroed, for this rank's region. `first` says that this is
  // the node's first rank, which also reserves memory for the header.
  Status map(SharedFile& file, bool first);

  // Maps every page, so that no call pays for page faults. Called once all ranks have reserved
  // their memory.
  void touch() const;

  int ranks() const { return ranks_; }
  int me() const { return me_; }

  std::byte* line(int local) const { return region(local); }
  std::byte* probe_lines(int local) const { return region(local) + kPage; }
  // Returns the note that only the rank `local` writes, while the node opens NCCL
  // (NcclGroup::Note). The other ranks read it only after a barrier, except the atomic member
  // `failed`, which they may read at any time.
  std::byte* note(int local) const { return probe_lines(local) + kProbeBytes; }
  // Returns the data area of a rank, aligned to 64 bytes. Only that rank writes it.
  float* data(int local) const { return reinterpret_cast<float*>(region(local) + kFrontBytes); }

  // The message buffers in the data area; the same ring on all ranks.
  BufferRing ring;

  // Pins the segment for copies to and from memory at the location, once per location. If it cannot
  // be pinned, these copies are slow and block.
  void pin(const device::Location& location);

  // The NCCL group of the node, created when the segment is opened. Its NCCL communicator is opened
  // at the first call on GPUs.
  std::unique_ptr<NcclGroup> nccl;

  // Ends this rank's use of a segment. With an open NCCL communicator, waits at most two seconds
  // for the other ranks to leave as well; if some have not left by then, keeps the segment until a
  // later leave() finds that all have.
  static void leave(std::unique_ptr<NodeSegment> segment);

 private:
  struct Header;
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kHeaderBytes = kPage;
  static constexpr std::size_t kFrontBytes = kPage + kProbeBytes + kPage;
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
  std::vector<device::Location> pinned_for_;  // the arguments of pin() so far
};

// A block has room for at least this many floats of each rank's shard, which are one cache line.
inline constexpr std::uint64_t kLeastPiece = 16;

// Opens the segment of the node-local ranks of a communicator, with shorter blocks if memory is
// short. Collective over the communicator. *segment is set on all its ranks or on none: it stays
// null if the ranks of some node cannot share memory.
Status open_segment(comm::Exchange& exchange, const comm::NodeLayout& layout, Intra intra,
                    Statistics& statistics, std::unique_ptr<NodeSegment>* segment);

}  // namespace slimpi::intra
