// SPDX-License-Identifier: BSD-3-Clause
#include "intra/node_barrier.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "comm/waiter.h"
#include "observe/trace.h"

namespace slimpi::intra {

// The words that one rank writes and the others poll. They share one cache line, so that a rank
// that has loaded `barriers` also has the published word in its cache.
struct NodeBarrier::Line {
  std::atomic<std::uint64_t> barriers;  // how many this rank has reached
  // The published words, alternately: word n + 2 overwrites word n. By then nobody needs word n: a
  // rank publishes word n + 2 only after the barrier that follows word n + 1, and every rank has
  // read word n before it reaches that barrier.
  std::uint64_t words[2];
};

// Returns the line of a rank. Its words are 0 at first.
NodeBarrier::Line& NodeBarrier::line(int local) const {
  static_assert(sizeof(Line) <= NodeSegment::kLine);
  return *reinterpret_cast<Line*>(segment_->line(local));
}

// The store need not be atomic, because the release store of the next barrier makes the word
// visible to the other ranks.
void NodeBarrier::publish(std::uint64_t published) {
  line(local_rank()).words[++publications_ % 2] = published;
}

NodeBarrier::Published NodeBarrier::published() const {
  Published result{UINT64_MAX, 0};
  for (int local = 0; local < size(); ++local) {
    const std::uint64_t theirs = word(local);
    result.all &= theirs;
    result.any |= theirs;
  }
  return result;
}

std::uint64_t NodeBarrier::word(int local) const {
  return line(local).words[publications_ % 2];
}

Status NodeBarrier::all_true(comm::Exchange& exchange, bool* flag) {
  publish(*flag ? 1 : 0);
  *flag = false;
  SLIMPI_TRY(barrier(exchange));
  *flag = published().all == 1;
  return Status::ok;
}

Status NodeBarrier::barrier(comm::Exchange& exchange, std::uint64_t bytes) {
  const bool probe = locality_.due(bytes);
  if (probe) locality_.write_probe_lines(segment_->probe_lines(local_rank()));
  // Release and acquire order everything that the ranks wrote before, including the data areas. The
  // counts only grow, so none needs to be reset, and a slow rank never misses a barrier.
  line(local_rank()).barriers.store(++barriers_, std::memory_order_release);
  Trace* const trace = Trace::running();
  Trace::Clock::time_point begin{};
  if (trace != nullptr) begin = Trace::Clock::now();
  comm::Waiter waiter(comm::Waiter::Poll::memory, &exchange, WaitStage::node_barrier);
  for (int local = 0; local < size(); ++local)
    while (line(local).barriers.load(std::memory_order_acquire) < barriers_)
      SLIMPI_TRY(waiter.pause());
  if (trace != nullptr)
    trace->add_barrier(begin, Trace::Clock::now(), first_, std::uint32_t(barriers_));
  if (probe) locality_.probe(segment_->probe_lines(locality_.target()));
  return Status::ok;
}

namespace {

// The probe lines. Each line of a probe holds the number of the next one, so a load must complete
// before the next can start. Hardware prefetch would shorten the time, because it loads lines at
// equal distances or lines that were read together before. So the distance grows with each line, no
// line is read twice, and the first line and the step change from probe to probe.
constexpr std::uint64_t kProbeLines = 8, kLine = 64, kLines = CacheLocality::kProbeBytes / kLine;

std::uint64_t first_line(std::uint64_t probe) {
  return probe * 29 % kLines;
}
std::uint64_t step(std::uint64_t probe) {
  return 2 * probe + 1;
}

// The limit between the times to read a probe line from a shared cache, 0.2 to 0.4 us, and from
// another cache, 0.7 to 1.5 us (docs/DESIGN.md).
constexpr std::uint64_t kCrossCacheNanoseconds = 550;

// Once due() has probed every rank twice, at least this many bytes are exchanged between two
// probes, so that a probe costs little in comparison.
constexpr std::uint64_t kProbeIntervalBytes = 512 << 10;

using ProbeWord = std::atomic<std::uint64_t>;
static_assert(ProbeWord::is_always_lock_free);

}  // namespace

CacheLocality::CacheLocality(int size, int me) : peers_(std::size_t(size - 1)), me_(me) {}

bool CacheLocality::due(std::uint64_t bytes) {
  bytes_ += bytes;
  if (peers_.empty() || (probes_ >= 2 * peers_.size() && bytes_ < kProbeIntervalBytes))
    return false;
  bytes_ = 0;
  ++probes_;
  return true;
}

void CacheLocality::write_probe_lines(std::byte* mine) const {
  std::uint64_t line = first_line(probes_);
  for (std::uint64_t i = 1; i <= kProbeLines; ++i) {
    const std::uint64_t next = (line + i * step(probes_)) % kLines;
    reinterpret_cast<ProbeWord*>(mine + line * kLine)->store(next, std::memory_order_relaxed);
    line = next;
  }
}

int CacheLocality::target() const {
  return (me_ + 1 + int(next_)) % int(peers_.size() + 1);
}

void CacheLocality::probe(const std::byte* probe_lines) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  std::uint64_t line = first_line(probes_);
  for (std::uint64_t i = 0; i < kProbeLines; ++i) {
    const auto* const word = reinterpret_cast<const ProbeWord*>(probe_lines + line * kLine);
    line = word->load(std::memory_order_relaxed) % kLines;
  }
  const std::chrono::nanoseconds spent = Clock::now() - begin;
  record(std::uint64_t(spent.count()));
}

void CacheLocality::record(std::uint64_t nanoseconds) {
  Peer& seen = peers_[next_];
  const bool cross_cache = nanoseconds > kCrossCacheNanoseconds;
  if (cross_cache == seen.last) seen.cross_cache = cross_cache;
  seen.last = cross_cache;
  next_ = (next_ + 1) % peers_.size();
  cross_cache_ =
      std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.cross_cache; });
}

}  // namespace slimpi::intra
