// SPDX-License-Identifier: BSD-3-Clause
#include "tests/helper/devices/protected_stream.h"

#include <climits>
#include <random>
#include <set>
#include <utility>

#include "tests/helper/devices/protected_memory.h"

namespace slimpi::test {

namespace {
std::set<ProtectedStream*>& streams() {
  static auto* const all = new std::set<ProtectedStream*>;
  return *all;
}
unsigned long g_queued = 0;
unsigned long g_last = ULONG_MAX;  // number of the piece of work at which the device is lost
std::minstd_rand g_chance;
}  // namespace

device::Stream* ProtectedStream::open() {
  const std::lock_guard lock(protected_mutex());
  auto* stream = new ProtectedStream;
  streams().insert(stream);
  return reinterpret_cast<device::Stream*>(stream);
}

void ProtectedStream::close(device::Stream* stream) {
  const std::lock_guard lock(protected_mutex());
  ProtectedStream& closed = of(stream);
  // Other streams may still wait for the closed stream.
  for (ProtectedStream* const other : streams())
    while (!other->work_.empty() && other->run_one()) continue;
  while (!closed.work_.empty()) closed.run_one();
  streams().erase(&closed);
  delete &closed;
}

ProtectedStream& ProtectedStream::of(device::Stream* stream) {
  const std::lock_guard lock(protected_mutex());
  auto* found = reinterpret_cast<ProtectedStream*>(stream);
  if (!streams().contains(found)) die("a stream is used that is not open");
  return *found;
}

void ProtectedStream::run_all() {
  const std::lock_guard lock(protected_mutex());
  for (ProtectedStream* stream : streams())
    while (!stream->work_.empty()) stream->run_one();
}

unsigned long ProtectedStream::queued() {
  const std::lock_guard lock(protected_mutex());
  return g_queued;
}

void ProtectedStream::queue(std::function<void()> work) {
  queue_until([work = std::move(work)] {
    work();
    return true;
  });
}

void ProtectedStream::queue_until(std::function<bool()> work) {
  const std::lock_guard lock(protected_mutex());
  ++g_queued;
  if (!lost()) return work_.push_back(std::move(work));
  for (ProtectedStream* stream : streams()) stream->work_.clear();
}

void ProtectedStream::lose(unsigned long transfers) {
  const std::lock_guard lock(protected_mutex());
  g_last = g_queued + transfers;
}

void ProtectedStream::repair() {
  const std::lock_guard lock(protected_mutex());
  g_last = ULONG_MAX;
  for (ProtectedStream* stream : streams()) stream->reached_ = stream->marks_;
}

bool ProtectedStream::lost() {
  const std::lock_guard lock(protected_mutex());
  return g_queued > g_last;
}

std::uint64_t ProtectedStream::record() {
  const std::lock_guard lock(protected_mutex());
  const std::uint64_t event = ++marks_;
  if (!lost())
    work_.push_back([this, event] {
      reached_ = event;
      return true;
    });
  return event;
}

// Event 0 asks whether a stream that has no work can still be used. If the stream has work, the
// caller has forgotten to record an event.
bool ProtectedStream::query(std::uint64_t event) {
  const std::lock_guard lock(protected_mutex());
  if (event > marks_ || (event == 0 && !work_.empty()))
    die("a mark is waited for that was never made");
  if (reached_ < event && !lost()) {
    if (asked_ != event) ahead_ = g_chance() % 2 == 0;
    asked_ = event;
    if (ahead_) run_others();
    if (reached_ < event) run_one();
  }
  return reached_ >= event;
}

// Lets other streams run ahead of the stream that is queried, as far as they need not wait.
void ProtectedStream::run_others() {
  for (ProtectedStream* const other : streams()) {
    if (other == this || g_chance() % 2 != 0) continue;
    for (auto transfers = g_chance() % 16; transfers > 0 && !other->work_.empty(); --transfers)
      if (!other->run_one()) break;
  }
}

void ProtectedStream::run_until(std::uint64_t event) {
  const std::lock_guard lock(protected_mutex());
  if (event == 0 || event > marks_) die("a mark is waited for that was never made");
  while (reached_ < event) run_one();
}

bool ProtectedStream::try_until(std::uint64_t event) {
  const std::lock_guard lock(protected_mutex());
  if (event == 0 || event > marks_) die("a mark is waited for that was never made");
  while (reached_ < event)
    if (!run_one()) return false;
  return true;
}

bool ProtectedStream::run_one() {
  if (running_) die("two streams wait for each other");
  running_ = true;
  std::function<bool()> work = std::move(work_.front());
  work_.pop_front();
  const bool done = work();
  if (!done) work_.push_front(std::move(work));
  running_ = false;
  return done;
}

}  // namespace slimpi::test
