// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/shared_memory.h"

#include <atomic>
#include <cstring>

#include "algorithm/waiter.h"

namespace slimpi::algorithm {

namespace {

constexpr std::size_t kLine = 64;  // a cache line, so that counters do not disturb each other

// A rank's count of meetings stands in front of its box.
std::atomic<std::uint64_t>& count_of(std::byte* box) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(box - kLine);
}

// Reads something of every page, so that no call pays for finding it; what a page holds is of no
// interest.
void touch(const std::byte* box, std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  for (std::size_t at = 0; at < bytes; at += kPage)
    static_cast<void>(*reinterpret_cast<const volatile std::byte*>(box + at));
}

}  // namespace

SharedMemory::~SharedMemory() {
  if (window_ != MPI_WIN_NULL) api_.Win_free(&window_);
}

Status SharedMemory::open(Exchange& exchange, const Layout& layout, std::size_t bytes,
                          bool* ready) {
  *ready = false;
  MPI_Comm neighbours = MPI_COMM_NULL, sharing = MPI_COMM_NULL;
  int code = api_.Comm_split(exchange.comm(), layout.node(), layout.rank, &neighbours);
  if (code == MPI_SUCCESS) {
    api_.Comm_set_errhandler(neighbours, MPI_ERRORS_RETURN);
    code = api_.Comm_split_type(neighbours, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &sharing);
  }
  // SLIMPI_RANKS_PER_NODE may call ranks of several machines one node.
  int together = 0, size = 0;
  if (code == MPI_SUCCESS) {
    api_.Comm_size(sharing, &together);
    api_.Comm_size(neighbours, &size);
  }
  std::uint64_t possible = code == MPI_SUCCESS && together == size ? 1 : 0;
  SLIMPI_TRY(exchange.all_min({&possible, 1}));
  if (possible == 1) {
    void* mine = nullptr;
    code = api_.Win_allocate_shared(MPI_Aint(bytes + kFront + kLine), 1, MPI_INFO_NULL, neighbours,
                                    &mine, &window_);
    possible = code == MPI_SUCCESS ? 1 : 0;
    SLIMPI_TRY(exchange.all_min({&possible, 1}));
  }
  if (sharing != MPI_COMM_NULL) api_.Comm_free(&sharing);
  if (possible == 1) {
    me_ = layout.local_rank();
    distance_.emplace(size, me_);
    for (int local = 0; local < size; ++local) {
      MPI_Aint there = 0;
      int unit = 0;
      void* base = nullptr;
      api_.Win_shared_query(window_, local, &there, &unit, &base);
      const auto address = reinterpret_cast<std::uintptr_t>(base);
      boxes_.push_back(static_cast<std::byte*>(base) + ((kLine - address % kLine) % kLine) +
                       kFront);
    }
    std::memset(static_cast<void*>(box(me_) - kFront), 0, bytes + kFront);
    api_.Barrier(neighbours);
    for (const std::byte* const other : boxes_) touch(other - kFront, bytes + kFront);
    *ready = true;
  }
  if (neighbours != MPI_COMM_NULL) api_.Comm_free(&neighbours);
  return Status::ok;
}

// Two words in turn: who says the next but one has seen everybody meet over the next, and so has
// everybody read this one.
std::uint64_t& SharedMemory::word(int local, std::uint64_t number) const {
  return reinterpret_cast<std::uint64_t*>(box(local) - kLine)[1 + number % 2];
}

void SharedMemory::say(std::uint64_t said) {
  word(me_, ++sayings_) = said;
}

SharedMemory::Said SharedMemory::said() const {
  Said result{UINT64_MAX, 0};
  for (int local = 0; local < int(boxes_.size()); ++local) {
    const std::uint64_t theirs = word(local, sayings_);
    result.all &= theirs;
    result.any |= theirs;
  }
  return result;
}

Status SharedMemory::meet(Exchange& exchange, std::uint64_t bytes) {
  const bool look = distance_->due(bytes);
  if (look) distance_->write_marks(marks(me_));
  count_of(box(me_)).store(++meetings_, std::memory_order_release);
  Waiter waiter(Waiter::Poll::memory, &exchange);
  for (std::byte* const other : boxes_)
    while (count_of(other).load(std::memory_order_acquire) < meetings_) SLIMPI_TRY(waiter.pause());
  if (look) distance_->look(marks(distance_->target()));
  return Status::ok;
}

}  // namespace slimpi::algorithm
