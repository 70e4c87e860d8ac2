// SPDX-License-Identifier: BSD-3-Clause
// The shared-memory segment of a set of processes on one node, and the state that belongs to it.
// All communicators whose node-local ranks are these processes use the same segment, in whatever
// order they number the processes. It ends with the last of them.
//
// It has two separate parts. Each communicator has a channel: a cache line of every process, for
// barriers and published words, so that communicators never disturb each other's order. The data
// area is large, exists once, and is leased to one call at a time by a try-lock in each process.
// Every rank publishes before the call's first barrier whether it got the lease. A call uses the
// data area only if its ranks hold the lease on every process. Nobody ever waits for a lease.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/round_up.h"
#include "base/shared_file.h"
#include "base/statistics.h"
#include "device/device.h"
#include "intra/buffer_ring.h"
#include "intra/cache_locality.h"
#include "intra/peer_memory.h"

namespace slimpi::intra {

class DevicePath;

class NodeSegment {
 public:
  static constexpr std::size_t kLine = 64;            // bytes of a cache line
  static constexpr int kChannels = 512;               // communicators on one segment at a time
  static constexpr std::uint64_t kBlock = 128 << 10;  // floats of a block in a data area, at most
  static constexpr std::size_t kNoteBytes = 384;

  // Describes a segment for `processes`, of which this one is number `me`; `block`: floats of the
  // longest message buffer. Maps nothing yet.
  NodeSegment(std::uint64_t id, std::vector<std::uint64_t> processes, int me, std::uint64_t block,
              Statistics& statistics);
  ~NodeSegment();
  NodeSegment(const NodeSegment&) = delete;
  NodeSegment& operator=(const NodeSegment&) = delete;

  // Bytes of the whole segment.
  std::size_t bytes() const { return kHeaderBytes + processes_.size() * region_bytes(); }

  // Maps the file and reserves memory for this process's region, and for the header if `first`.
  Status map(SharedFile& file, bool first);

  // Maps every page, so that no call pays for page faults. All processes have reserved their memory
  // before.
  void touch() const;

  std::uint64_t id() const { return id_; }
  const std::vector<std::uint64_t>& processes() const { return processes_; }
  int me() const { return me_; }

  // Takes a channel that no communicator uses, with its lines 0; -1 where there is none. One
  // process calls it and sends the number to the others.
  int take_channel();
  // Every process that received the channel calls it once, after its last barrier there.
  void leave_channel(int channel);
  // Frees a channel that no other process has received.
  void give_back_channel(int channel);

  // A process's line on a channel; its probe lines, its notes, the start of its data area. Only
  // that process writes them; leave_channel() clears the lines.
  std::byte* line(int process, int channel) const {
    return region(process) + std::size_t(channel) * kLine;
  }
  std::byte* probe_lines(int process) const { return region(process) + kLineBytes; }
  std::byte* note(int process) const { return probe_lines(process) + CacheLocality::kProbeBytes; }
  PeerNote& peer_note(int process) const {
    return *reinterpret_cast<PeerNote*>(note(process) + kPeerNote);
  }
  float* data(int process) const { return reinterpret_cast<float*>(region(process) + kFrontBytes); }

  // Leases the data area, the notes and `device_path` in this process. False where another thread's
  // call holds the lease, or where a call failed while it held it: then the processes may have
  // counted different numbers of blocks.
  bool try_lease();
  void end_lease(bool failed);

  // The message buffers in the data area. Only the call that holds the lease changes the ring. A
  // call that holds it on all processes finds the same ring on all.
  BufferRing ring;

  // Pins the segment for copies to and from memory at the location, once for each; where that is
  // not possible, copies are slow and block. Belongs to the lease.
  void pin(const device::Location& location);

  // How the processes exchange device memory; belongs to the lease, too. Set when the segment is
  // opened.
  std::unique_ptr<DevicePath> device_path;

  // Whether all processes can read each other's memory in place. Set when the segment is opened;
  // the same on all.
  bool peers_readable = false;

  // To be called when the last communicator of this process has released the segment. Other
  // processes may still read device memory of this process, so it waits for them briefly. Returns
  // whether all have left; if not, the object must be kept until gone() is true.
  bool leave();
  bool gone() const;

 private:
  struct Header;
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kHeaderBytes = kPage;
  static constexpr std::size_t kLineBytes = std::size_t(kChannels) * kLine;
  static constexpr std::size_t kFrontBytes = kLineBytes + CacheLocality::kProbeBytes + kPage;
  static constexpr std::size_t kPeerNote = 512;  // where the peer note lies on the page of the note
  static_assert(kNoteBytes <= kPeerNote && kPeerNote + sizeof(PeerNote) <= kPage);
  std::size_t region_bytes() const {
    return round_up(kFrontBytes + ring.floats() * sizeof(float), kPage);
  }
  std::byte* region(int process) const {
    return memory_ + kHeaderBytes + std::size_t(process) * region_bytes();
  }
  Header& header() const { return *reinterpret_cast<Header*>(memory_); }

  const std::uint64_t id_;
  const std::vector<std::uint64_t> processes_;
  const int me_;
  Statistics& statistics_;
  std::byte* memory_ = nullptr;
  std::vector<device::Location> pinned_for_;  // pin() was called for them
  std::atomic<bool> leased_{false};
  bool failed_ = false;  // belongs to the lease
};

}  // namespace slimpi::intra
