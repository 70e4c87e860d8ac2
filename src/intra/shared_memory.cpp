// SPDX-License-Identifier: BSD-3-Clause
#include "intra/shared_memory.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

#include "base/hash.h"
#include "intra/nccl_group.h"
#include "observe/log.h"

#ifndef MADV_POPULATE_WRITE  // in glibc since 2.35
#define MADV_POPULATE_WRITE 23
#endif

namespace slimpi::intra {

namespace {

// How long leave() waits for the other ranks to leave. If all have left, it closes the NCCL
// communicator; otherwise it keeps the segment.
constexpr auto kPatience = std::chrono::seconds(2);

// The segments with an open NCCL communicator that this rank has left and other ranks have not.
// The list is never destroyed, because exit handlers may still free communicators.
struct Leaving {
  std::mutex mutex;
  std::vector<std::unique_ptr<NodeSegment>> segments;
};
Leaving& leaving() {
  static auto* const all = new Leaving;
  return *all;
}

}  // namespace

// The header of the segment, on a page of its own before the regions. All ranks change it, by
// atomic operations.
struct NodeSegment::Header {
  std::atomic<std::uint32_t> gone;  // ranks that have left the segment
};

NodeSegment::NodeSegment(int ranks, int me, std::uint64_t block, Statistics& statistics)
    : ring(block), ranks_(ranks), me_(me), statistics_(statistics) {
  static_assert(sizeof(Header) <= kHeaderBytes);
}

NodeSegment::~NodeSegment() {
  // NCCL and the pinning end before munmap(), because a driver must not hold pinned pages that are
  // no longer mapped.
  nccl.reset();
  if (memory_ == nullptr) return;
  for (const device::Location& location : pinned_for_) location.device->unpin(memory_);
  munmap(memory_, bytes());
  statistics_.segment(-1, -std::int64_t(bytes()));
}

Status NodeSegment::map(SharedFile& file, bool first) {
  SLIMPI_TRY(file.map(bytes(), &memory_));
  statistics_.segment(1, std::int64_t(bytes()));
  // Each rank reserves its own region, so that the pages are on its NUMA node. A full /dev/shm is
  // an error here instead of SIGBUS at the first write.
  if (first) SLIMPI_TRY(file.reserve(0, kHeaderBytes));
  return file.reserve(kHeaderBytes + std::size_t(me_) * region_bytes(), region_bytes());
}

void NodeSegment::touch() const {
  // One system call touches all pages in half of the time, if the kernel has it (Linux 5.14).
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

// Counts this rank as one that has left. If NCCL is open, waits until all ranks have left before
// closing it, because close() itself would wait for ranks that may leave much later. Returns false,
// with NCCL still open, if a rank did not leave in time.
bool NodeSegment::close_nccl() {
  header().gone.fetch_add(1, std::memory_order_acq_rel);
  if (nccl == nullptr || !nccl->is_open()) return true;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!gone() && std::chrono::steady_clock::now() < end) sched_yield();
  if (!gone()) return false;
  nccl->close();
  return true;
}

void NodeSegment::leave(std::unique_ptr<NodeSegment> segment) {
  const bool closed = segment->close_nccl();
  Leaving& others = leaving();
  const std::lock_guard lock(others.mutex);
  std::erase_if(others.segments, [](const auto& one) { return one->gone(); });
  if (!closed) others.segments.push_back(std::move(segment));
}

// The opening of a segment. The first rank of each node, its leader, makes a file and gives it to
// the other ranks. All ranks of the communicator take the same steps, and agree after each whether
// all of them succeeded, so no system call blocks and no rank waits for one that failed.

namespace {

// The lengths of a block in floats, in the order in which they are tried: the fastest first, then
// shorter ones in case memory is short.
constexpr std::uint64_t kBlocks[] = {NodeSegment::kBlock, 32 << 10, 8 << 10};

// How many ranks ask the leader for the file at once: as many as the queue of a socket has room
// for.
constexpr int kAtOnce = 64;

// Sent by the ranks of this node, so that the leader can tell their requests from strangers'
// (FileOffer::give).
constexpr std::uint64_t kToken = 0x736c696d7069;

// Returns a number that almost certainly differs between processes: a random number or, if a
// sandbox refuses that, one made from the time and the process id.
std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (getentropy(&number, sizeof number) != 0)
    number = splitmix64(std::uint64_t(std::chrono::system_clock::now().time_since_epoch().count()),
                        getpid());
  return number;
}

// Makes one attempt to open a segment: maps the file of the node's leader on all ranks of the node.
// Sets *good to whether all ranks of the communicator succeeded. Every rank reserves the memory of
// its own region, on its NUMA node. `largest` is the number of ranks of the largest node.
Status map(comm::Exchange& exchange, const comm::NodeLayout& layout, int largest,
           NodeSegment& segment, bool* good) {
  const int local = segment.me();
  const bool leads = local == 0;
  SharedFile file;
  FileOffer offer;
  FileRequest request;
  *good = true;
  // Runs a step on this rank, unless an earlier step has failed on some rank.
  const auto together = [&](const auto& step) {
    if (*good && !step()) {
      *good = false;
      log_failure_once(LogLevel::debug, "a shared-memory segment could not be made");
    }
    return exchange.all_true(good);
  };
  // The name of the leader's socket for this node and this attempt. It contains the greatest random
  // number of all ranks, and differs between attempts, because other threads may make attempts at
  // the same time.
  static std::atomic<std::uint64_t> attempts{0};
  std::uint64_t name = splitmix64(random_number(), attempts++) >> 1;  // 63 bits are enough
  SLIMPI_TRY(exchange.all_max({&name, 1}));
  name = splitmix64(name, std::uint64_t(layout.node()));
  SLIMPI_TRY(together([&] {
    // The leader makes the file, which has its length but no memory yet.
    return !leads || (file.create(segment.bytes()) == Status::ok && offer.open(name) == Status::ok);
  }));
  for (int first = 1; first < largest; first += kAtOnce) {
    const int end = std::min(first + kAtOnce, segment.ranks());
    SLIMPI_TRY(together(
        [&] { return local < first || local >= end || request.ask(name, kToken) == Status::ok; }));
    SLIMPI_TRY(together([&] {
      bool given = true;
      for (int other = first; leads && given && other < end; ++other)
        given = offer.give(file, kToken) == Status::ok;
      return given;
    }));
  }
  return together([&] {
    return (leads || request.take(&file) == Status::ok) && segment.map(file, leads) == Status::ok;
  });
}

}  // namespace

Status open_segment(comm::Exchange& exchange, const comm::NodeLayout& layout, Intra intra,
                    Statistics& statistics, std::unique_ptr<NodeSegment>* segment) {
  std::size_t largest = 0;  // ranks of the largest node
  for (const auto& ranks : layout.ranks_of) largest = std::max(largest, ranks.size());
  for (const std::uint64_t block : kBlocks) {
    // A block must have at least kLeastPiece floats of every rank's shard; see piece_of().
    if (block < kLeastPiece * largest) break;
    auto made = std::make_unique<NodeSegment>(int(layout.node_ranks().size()), layout.local_rank(),
                                              block, statistics);
    bool good = false;
    SLIMPI_TRY(map(exchange, layout, int(largest), *made, &good));
    if (!good) continue;
    made->touch();  // only now, when every rank has reserved its part
    made->nccl = std::make_unique<NcclGroup>(intra);
    *segment = std::move(made);
    break;
  }
  return Status::ok;
}

}  // namespace slimpi::intra
