// SPDX-License-Identifier: BSD-3-Clause
// The shared-memory segment of a set of processes on one node, and what goes with it. All
// communicators whose node-local ranks are these processes use the same one, in whatever order they
// number them; it ends with the last of them.
//
// Two things are separate in it. Each communicator has a channel: a cache line of every process,
// for barriers and published words, so communicators never disturb each other's order. The data
// area, which is large, exists once and is leased to one call at a time: a try-lock of each
// process. What came of it travels in the word that every rank publishes before the call's first
// barrier, so that a call uses the area only if its ranks have the lease on every process, and
// nobody ever waits for a lease.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/shared_file.h"
#include "base/statistics.h"
#include "intra/cache_locality.h"

namespace slimpi::intra {

class DevicePath;

class NodeSegment {
 public:
  static constexpr std::size_t kLine = 64;            // bytes of a cache line
  static constexpr int kChannels = 512;               // communicators on one segment at a time
  static constexpr int kDepth = 3;                    // blocks in flight
  static constexpr std::uint64_t kBlock = 128 << 10;  // floats of a data area in one, at most
  static constexpr std::size_t kNoteBytes = 384;

  // Describes a segment for `processes`, of which this one is number `me`; `block`: floats of a
  // process's area in one block. Maps nothing yet.
  NodeSegment(std::uint64_t id, std::vector<std::uint64_t> processes, int me, std::uint64_t block,
              Statistics& statistics);
  ~NodeSegment();
  NodeSegment(const NodeSegment&) = delete;
  NodeSegment& operator=(const NodeSegment&) = delete;

  // Bytes of the whole segment.
  std::size_t bytes() const { return kHeaderBytes + processes_.size() * region_bytes(); }

  // Maps the file and takes memory for this process's region, and for the header if `first`.
  Status map(SharedFile& file, bool first);

  // Finds every page, so that no call pays for it. All processes have mapped it by now.
  void touch() const;

  std::uint64_t id() const { return id_; }
  const std::vector<std::uint64_t>& processes() const { return processes_; }
  std::uint64_t block() const { return block_; }
  int me() const { return me_; }

  // A channel that no communicator uses, its lines 0; -1 where there is none. For one process,
  // which tells the others.
  int take_channel();
  // Every process that was told of the channel lets go of it once, after its last barrier there.
  void leave_channel(int channel);
  // The others were never told of it.
  void give_back_channel(int channel);

  // The line of a process on a channel; its note; the start of its data area.
  std::byte* line(int process, int channel) const {
    return region(process) + std::size_t(channel) * kLine;
  }
  std::byte* probe_lines(int process) const { return region(process) + kLineBytes; }
  std::byte* note(int process) const { return probe_lines(process) + CacheLocality::kProbeBytes; }
  float* data(int process) const { return reinterpret_cast<float*>(region(process) + kFrontBytes); }

  // Leases the data area, the notes and `direct` in this process; false where another thread's call
  // has them, or where a call failed while it had them: the processes may be at different blocks
  // then.
  bool try_lease();
  void end_lease(bool failed);

  // Blocks that passed through the data area so far: the next one's place among the slots follows
  // from it, so that a slow reader of the last call is not written over by the next. Alike on all
  // processes for whoever has the lease on all of them.
  std::uint64_t blocks = 0;

  // The ways between the processes' device memory; belongs to the lease, too. Set when the segment
  // is opened.
  std::unique_ptr<DevicePath> device_path;

  // The last communicator of this process let go of the segment. The others may still read device
  // memory of this process: it waits for them briefly. Returns whether all are gone; where not,
  // the object has to be kept until gone() is true.
  bool leave();
  bool gone() const;

 private:
  struct Header;
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kHeaderBytes = kPage;
  static constexpr std::size_t kLineBytes = std::size_t(kChannels) * kLine;
  static constexpr std::size_t kFrontBytes = kLineBytes + CacheLocality::kProbeBytes + kPage;
  static_assert(kNoteBytes <= kPage);
  std::size_t region_bytes() const {
    return (kFrontBytes + kDepth * std::size_t(block_) * sizeof(float) + kPage - 1) / kPage * kPage;
  }
  std::byte* region(int process) const {
    return memory_ + kHeaderBytes + std::size_t(process) * region_bytes();
  }
  Header& header() const { return *reinterpret_cast<Header*>(memory_); }

  const std::uint64_t id_;
  const std::vector<std::uint64_t> processes_;
  const int me_;
  const std::uint64_t block_;
  Statistics& statistics_;
  std::byte* memory_ = nullptr;
  std::atomic<bool> leased_{false};
  bool failed_ = false;  // belongs to the lease
};

}  // namespace slimpi::intra
