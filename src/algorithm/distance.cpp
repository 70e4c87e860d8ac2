// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/distance.h"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace slimpi::algorithm {

namespace {

// A mark names the line of the next one to read, so that each is waited for before the next is
// asked for. Caches fetch unasked what was read together before, or at equal distances, so every
// look has its own lines: they lie a step, two steps, three steps apart, which meets none twice,
// and the first one and the step change.
constexpr std::uint64_t kMarks = 8, kLine = 64, kLines = Distance::kMarkBytes / kLine;

std::uint64_t first_line(std::uint64_t look) {
  return look * 29 % kLines;
}
std::uint64_t step(std::uint64_t look) {
  return 2 * look + 1;
}

// Marks out of a cache that is shared take 0.2 to 0.4 us, out of another 0.7 to 1.5 us
// (docs/DESIGN.md).
constexpr std::uint64_t kFarNanoseconds = 550;

// A look beside the time that so many bytes take.
constexpr std::uint64_t kSeldomBytes = 512 << 10;

using Mark = std::atomic<std::uint64_t>;
static_assert(Mark::is_always_lock_free);

}  // namespace

Distance::Distance(int size, int me) : neighbours_(std::size_t(size - 1)), me_(me) {}

bool Distance::due(std::uint64_t bytes) {
  bytes_ += bytes;
  if (neighbours_.empty() || (looks_ >= 2 * neighbours_.size() && bytes_ < kSeldomBytes))
    return false;
  bytes_ = 0;
  ++looks_;
  return true;
}

void Distance::write_marks(std::byte* mine) const {
  std::uint64_t line = first_line(looks_);
  for (std::uint64_t i = 1; i <= kMarks; ++i) {
    const std::uint64_t next = (line + i * step(looks_)) % kLines;
    reinterpret_cast<Mark*>(mine + line * kLine)->store(next, std::memory_order_relaxed);
    line = next;
  }
}

int Distance::target() const {
  return (me_ + 1 + int(next_)) % int(neighbours_.size() + 1);
}

void Distance::look(const std::byte* marks) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  std::uint64_t line = first_line(looks_);
  for (std::uint64_t i = 0; i < kMarks; ++i) {
    const auto* const mark = reinterpret_cast<const Mark*>(marks + line * kLine);
    line = mark->load(std::memory_order_relaxed) % kLines;
  }
  const std::chrono::nanoseconds spent = Clock::now() - begin;
  record(std::uint64_t(spent.count()));
}

void Distance::record(std::uint64_t nanoseconds) {
  Neighbour& seen = neighbours_[next_];
  const bool far = nanoseconds > kFarNanoseconds;
  if (far == seen.last) seen.far = far;
  seen.last = far;
  next_ = (next_ + 1) % neighbours_.size();
  far_ = std::any_of(neighbours_.begin(), neighbours_.end(),
                     [](const Neighbour& neighbour) { return neighbour.far; });
}

}  // namespace slimpi::algorithm
