// SPDX-License-Identifier: BSD-3-Clause
#include "intra/node_segment.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "intra/device_path.h"

#ifndef MADV_POPULATE_WRITE  // in glibc since 2.35
#define MADV_POPULATE_WRITE 23
#endif

namespace slimpi::intra {

namespace {
// How long a process that leaves waits for others that may still read its device memory.
constexpr auto kPatience = std::chrono::seconds(2);
}  // namespace

// In front of the regions, on a page of its own; all zero at first. All processes change it,
// atomically.
struct NodeSegment::Header {
  std::atomic<std::uint64_t> used[kChannels / 64];  // one bit per channel
  std::atomic<std::uint32_t> users[kChannels];      // processes that have not left the channel yet
  std::atomic<std::uint32_t> gone;                  // processes that left the segment
};

NodeSegment::NodeSegment(std::uint64_t id, std::vector<std::uint64_t> processes, int me,
                         std::uint64_t block, Statistics& statistics)
    : ring(block), id_(id), processes_(std::move(processes)), me_(me), statistics_(statistics) {
  static_assert(sizeof(Header) <= kHeaderBytes);
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
}

NodeSegment::~NodeSegment() {
  // Before munmap: a driver must not hold pinned pages that are no longer mapped.
  device_path.reset();
  if (memory_ == nullptr) return;
  for (const device::Location& location : pinned_for_) location.device->unpin(memory_);
  munmap(memory_, bytes());
  statistics_.segment(-1, -std::int64_t(bytes()));
}

Status NodeSegment::map(SharedFile& file, bool first) {
  SLIMPI_TRY(file.map(bytes(), &memory_));
  statistics_.segment(1, std::int64_t(bytes()));
  // Each process reserves its own region: the pages then lie on its NUMA node, and a full /dev/shm
  // is an error here instead of SIGBUS at the first write.
  if (first) SLIMPI_TRY(file.reserve(0, kHeaderBytes));
  return file.reserve(kHeaderBytes + std::size_t(me_) * region_bytes(), region_bytes());
}

void NodeSegment::touch() const {
  // One system call for all pages where the kernel has it (Linux 5.14): half of the time.
  if (madvise(memory_, bytes(), MADV_POPULATE_WRITE) == 0) return;
  for (std::size_t at = 0; at < bytes(); at += kPage)
    static_cast<void>(*reinterpret_cast<const volatile std::byte*>(memory_ + at));
}

void NodeSegment::pin(const device::Location& location) {
  const device::Device& device = *location.device;
  if (device.pin == nullptr ||
      std::find(pinned_for_.begin(), pinned_for_.end(), location) != pinned_for_.end())
    return;
  pinned_for_.push_back(location);
  if (device.pin(location, memory_, bytes()) != Status::ok)
    log_failure_once(LogLevel::info,
                     "copies between the GPU and the memory that the ranks of a node share are "
                     "slow");
}

int NodeSegment::take_channel() {
  for (int word = 0; word < kChannels / 64; ++word) {
    std::uint64_t seen = header().used[word].load(std::memory_order_relaxed);
    // Acquire sees the lines that the last user's leave_channel cleared.
    while (~seen != 0) {
      const int bit = __builtin_ctzll(~seen);
      if (!header().used[word].compare_exchange_weak(seen, seen | std::uint64_t(1) << bit,
                                                     std::memory_order_acquire))
        continue;
      const int channel = word * 64 + bit;
      header().users[channel].store(std::uint32_t(processes_.size()), std::memory_order_relaxed);
      return channel;
    }
  }
  return -1;
}

// The last process to leave clears the lines. No process reads them any more, and none will before
// it receives the channel again.
void NodeSegment::leave_channel(int channel) {
  if (header().users[channel].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (int process = 0; process < int(processes_.size()); ++process)
    std::memset(static_cast<void*>(line(process, channel)), 0, kLine);
  give_back_channel(channel);
}

void NodeSegment::give_back_channel(int channel) {
  header().used[channel / 64].fetch_and(~(std::uint64_t(1) << channel % 64),
                                        std::memory_order_release);
}

bool NodeSegment::try_lease() {
  if (leased_.load(std::memory_order_relaxed) || leased_.exchange(true, std::memory_order_acquire))
    return false;
  // `failed_` is read and written with the lease only, so it needs no atomic.
  if (failed_) leased_.store(false, std::memory_order_release);
  return !failed_;
}

void NodeSegment::end_lease(bool failed) {
  failed_ = failed_ || failed;
  leased_.store(false, std::memory_order_release);
}

bool NodeSegment::gone() const {
  return header().gone.load(std::memory_order_acquire) == processes_.size();
}

// No process frees its device memory before the others have unmapped it. NCCL communicators are
// closed after that, because closing them waits for the other processes without progress in MPI.
bool NodeSegment::leave() {
  if (device_path != nullptr) device_path->close_message_buffers();
  // From here on this process uses no device memory of the others.
  header().gone.fetch_add(1, std::memory_order_acq_rel);
  if (device_path == nullptr || device_path->path() == DevicePath::Path::host) return true;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!gone() && std::chrono::steady_clock::now() < end) sched_yield();
  if (!gone()) return false;
  device_path->close_nccl(!failed_);
  return true;
}

}  // namespace slimpi::intra
