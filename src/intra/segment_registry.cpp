// SPDX-License-Identifier: BSD-3-Clause
#include "intra/segment_registry.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace slimpi::intra {

namespace {

// Where the kernel has no random numbers yet, the time and the process id are used.
std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) == ssize_t(sizeof number) && number != 0)
    return number;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return (std::uint64_t(now.tv_sec) * 1'000'000'000 + std::uint64_t(now.tv_nsec)) << 20 ^
         std::uint64_t(getpid()) << 1 ^ 1;
}

}  // namespace

SegmentRegistry& SegmentRegistry::instance() {
  static auto* const registry = new SegmentRegistry;
  return *registry;
}

std::uint64_t SegmentRegistry::process() {
  const std::lock_guard lock(mutex_);
  // A forked child has its parent's memory, and must not pass for it.
  if (pid_ != getpid()) process_ = random_number();
  pid_ = getpid();
  return process_;
}

std::uint64_t SegmentRegistry::random() {
  return random_number();
}

SegmentRegistry::Entry* SegmentRegistry::entry_of(std::uint64_t id) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.segment->id() == id; });
  return found == entries_.end() ? nullptr : &*found;
}

std::shared_ptr<NodeSegment> SegmentRegistry::find(const std::vector<std::uint64_t>& processes,
                                                   Intra intra, int* channel) {
  const std::lock_guard lock(mutex_);
  // Only the first of the node's ranks comes here; the others get the segment's id from it. Which
  // segment it finds is therefore no decision that ranks could take differently.
  for (Entry& entry : entries_) {
    if (entry.intra != intra || entry.segment->processes() != processes) continue;
    // All channels of a segment may be taken; then another one is looked for, or made.
    *channel = entry.segment->take_channel();
    if (*channel < 0) continue;
    ++entry.users;
    return entry.segment;
  }
  return nullptr;
}

std::shared_ptr<NodeSegment> SegmentRegistry::find(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  Entry* const entry = entry_of(id);
  // The proposing rank still has it, this one has not: the last communicator was freed here first.
  if (entry == nullptr) return nullptr;
  ++entry->users;
  return entry->segment;
}

// The caller is the first user. From here on other threads may find the segment.
void SegmentRegistry::add(std::shared_ptr<NodeSegment> segment, Intra intra) {
  const std::lock_guard lock(mutex_);
  entries_.push_back({std::move(segment), intra, 1});
}

void SegmentRegistry::release(std::shared_ptr<NodeSegment> segment) {
  {
    const std::lock_guard lock(mutex_);
    // There is no thread of slimpi's own, so what the others have left meanwhile is freed here.
    std::erase_if(leaving_, [](const auto& other) { return other->gone(); });
    Entry* const entry = entry_of(segment->id());
    if (entry == nullptr) return;
    // Another communicator of this process still uses it.
    if (--entry->users != 0) return;
    entries_.erase(entries_.begin() + (entry - entries_.data()));
  }
  // No caller can find it any more. leave() may wait, so the lock is not held.
  if (segment->leave()) return;
  const std::lock_guard lock(mutex_);
  leaving_.push_back(std::move(segment));
}

std::size_t SegmentRegistry::size() {
  const std::lock_guard lock(mutex_);
  return entries_.size() + leaving_.size();
}

}  // namespace slimpi::intra
