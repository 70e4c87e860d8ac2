// SPDX-License-Identifier: BSD-3-Clause
#include "intra/shared_memory.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

#include "intra/nccl_group.h"
#include "observe/log.h"

#ifndef MADV_POPULATE_WRITE  // in glibc since 2.35
#define MADV_POPULATE_WRITE 23
#endif

namespace slimpi::intra {

namespace {

// How long a rank that leaves waits for the others before it closes the NCCL communicator.
constexpr auto kPatience = std::chrono::seconds(2);

// Segments that other ranks have not left yet. Never destroyed: exit handlers may still free
// communicators.
struct Leaving {
  std::mutex mutex;
  std::vector<std::unique_ptr<NodeSegment>> segments;
};
Leaving& leaving() {
  static auto* const all = new Leaving;
  return *all;
}

}  // namespace

// In front of the regions, on a page of its own. All ranks change it, atomically.
struct NodeSegment::Header {
  std::atomic<std::uint32_t> gone;  // ranks that have left the segment
};

NodeSegment::NodeSegment(int ranks, int me, std::uint64_t block, Statistics& statistics)
    : ring(block), ranks_(ranks), me_(me), statistics_(statistics) {
  static_assert(sizeof(Header) <= kHeaderBytes);
}

NodeSegment::~NodeSegment() {
  // Before munmap: a driver must not hold pinned pages that are no longer mapped.
  nccl.reset();
  if (memory_ == nullptr) return;
  for (const device::Location& location : pinned_for_) location.device->unpin(memory_);
  munmap(memory_, bytes());
  statistics_.segment(-1, -std::int64_t(bytes()));
}

Status NodeSegment::map(SharedFile& file, bool first) {
  SLIMPI_TRY(file.map(bytes(), &memory_));
  statistics_.segment(1, std::int64_t(bytes()));
  // Each rank reserves its own region: the pages then lie on its NUMA node, and a full /dev/shm
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

bool NodeSegment::gone() const {
  return header().gone.load(std::memory_order_acquire) == std::uint32_t(ranks_);
}

// Closing the NCCL communicator waits for the other ranks without progress in MPI, so all leave
// first.
bool NodeSegment::close_nccl() {
  header().gone.fetch_add(1, std::memory_order_acq_rel);
  if (nccl == nullptr || !nccl->is_open()) return true;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!gone() && std::chrono::steady_clock::now() < end) sched_yield();
  if (!gone()) return false;
  nccl->close(true);
  return true;
}

void NodeSegment::leave(std::unique_ptr<NodeSegment> segment) {
  const bool closed = segment->close_nccl();
  Leaving& others = leaving();
  const std::lock_guard lock(others.mutex);
  std::erase_if(others.segments, [](const auto& one) { return one->gone(); });
  if (!closed) others.segments.push_back(std::move(segment));
}

}  // namespace slimpi::intra
