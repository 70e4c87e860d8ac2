// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/shared_memory.h"

#include <atomic>

#include "algorithm/waiter.h"

namespace slimpi::algorithm {

// What one rank writes and the others poll, on one cache line: who waits for the count has the word
// with it.
struct SharedMemory::Line {
  std::atomic<std::uint64_t> barriers;  // that this rank has reached
  // Two in turn: who publishes the next but one has seen everybody at the barrier behind the next,
  // and so has everybody read this one.
  std::uint64_t words[2];
};

Status SharedMemory::open(Exchange& exchange, const Layout& layout, Intra intra, bool* ready) {
  SLIMPI_TRY(open_segment(exchange, layout, intra, statistics_, &place_, ready));
  if (!*ready) return Status::ok;
  static_assert(sizeof(Line) <= NodeSegment::kLine);
  me_ = layout.local_rank();
  lines_.clear();
  for (const int process : place_.process_of)
    lines_.push_back(reinterpret_cast<Line*>(segment().line(process, place_.channel)));
  distance_.emplace(size(), me_);
  return Status::ok;
}

void SharedMemory::say(std::uint64_t said) {
  lines_[std::size_t(me_)]->words[++sayings_ % 2] = said;
}

SharedMemory::Said SharedMemory::said() const {
  Said result{UINT64_MAX, 0};
  for (const Line* const line : lines_) {
    const std::uint64_t theirs = line->words[sayings_ % 2];
    result.all &= theirs;
    result.any |= theirs;
  }
  return result;
}

Status SharedMemory::meet(Exchange& exchange, std::uint64_t bytes) {
  const bool look = distance_->due(bytes);
  if (look) distance_->write_marks(marks(me_));
  lines_[std::size_t(me_)]->barriers.store(++barriers_, std::memory_order_release);
  Waiter waiter(Waiter::Poll::memory, &exchange);
  for (const Line* const other : lines_)
    while (other->barriers.load(std::memory_order_acquire) < barriers_) SLIMPI_TRY(waiter.pause());
  if (look) distance_->look(marks(distance_->target()));
  return Status::ok;
}

}  // namespace slimpi::algorithm
