// SPDX-License-Identifier: BSD-3-Clause
#include "tests/helper/guarded_stream.h"

#include <climits>
#include <random>
#include <set>
#include <utility>

#include "tests/helper/guarded_memory.h"

namespace slimpi::test {

namespace {
std::set<GuardedStream*>& streams() {
  static auto* const all = new std::set<GuardedStream*>;
  return *all;
}
unsigned long g_queued = 0;
unsigned long g_last = ULONG_MAX;  // piece of work that the device does not survive
std::minstd_rand g_chance;
}  // namespace

device::Stream* GuardedStream::open() {
  const std::lock_guard lock(guarded_mutex());
  auto* stream = new GuardedStream;
  streams().insert(stream);
  return reinterpret_cast<device::Stream*>(stream);
}

void GuardedStream::close(device::Stream* stream) {
  const std::lock_guard lock(guarded_mutex());
  GuardedStream& closed = of(stream);
  // Others may still wait for it.
  for (GuardedStream* const other : streams())
    while (!other->work_.empty() && other->run_one()) continue;
  while (!closed.work_.empty()) closed.run_one();
  streams().erase(&closed);
  delete &closed;
}

GuardedStream& GuardedStream::of(device::Stream* stream) {
  const std::lock_guard lock(guarded_mutex());
  auto* found = reinterpret_cast<GuardedStream*>(stream);
  if (!streams().contains(found)) die("a stream is used that is not open");
  return *found;
}

void GuardedStream::run_all() {
  const std::lock_guard lock(guarded_mutex());
  for (GuardedStream* stream : streams())
    while (!stream->work_.empty()) stream->run_one();
}

unsigned long GuardedStream::queued() {
  const std::lock_guard lock(guarded_mutex());
  return g_queued;
}

void GuardedStream::queue(std::function<void()> work) {
  queue_until([work = std::move(work)] {
    work();
    return true;
  });
}

void GuardedStream::queue_until(std::function<bool()> work) {
  const std::lock_guard lock(guarded_mutex());
  ++g_queued;
  if (!lost()) return work_.push_back(std::move(work));
  for (GuardedStream* stream : streams()) stream->work_.clear();
}

void GuardedStream::lose(unsigned long pieces) {
  const std::lock_guard lock(guarded_mutex());
  g_last = g_queued + pieces;
}

void GuardedStream::repair() {
  const std::lock_guard lock(guarded_mutex());
  g_last = ULONG_MAX;
  for (GuardedStream* stream : streams()) stream->reached_ = stream->marks_;
}

bool GuardedStream::lost() {
  const std::lock_guard lock(guarded_mutex());
  return g_queued > g_last;
}

std::uint64_t GuardedStream::mark() {
  const std::lock_guard lock(guarded_mutex());
  const std::uint64_t mark = ++marks_;
  if (!lost())
    work_.push_back([this, mark] {
      reached_ = mark;
      return true;
    });
  return mark;
}

bool GuardedStream::poll(std::uint64_t mark) {
  const std::lock_guard lock(guarded_mutex());
  if (mark == 0 || mark > marks_) die("a mark is waited for that was never made");
  if (reached_ < mark && !lost()) {
    if (asked_ != mark) ahead_ = g_chance() % 2 == 0;
    asked_ = mark;
    if (ahead_) run_others();
    if (reached_ < mark) run_one();
  }
  return reached_ >= mark;
}

// Other streams run ahead of the one that is asked for, as far as nothing holds them up.
void GuardedStream::run_others() {
  for (GuardedStream* const other : streams()) {
    if (other == this || g_chance() % 2 != 0) continue;
    for (auto pieces = g_chance() % 16; pieces > 0 && !other->work_.empty(); --pieces)
      if (!other->run_one()) break;
  }
}

void GuardedStream::run_until(std::uint64_t mark) {
  const std::lock_guard lock(guarded_mutex());
  if (mark == 0 || mark > marks_) die("a mark is waited for that was never made");
  while (reached_ < mark) run_one();
}

bool GuardedStream::try_until(std::uint64_t mark) {
  const std::lock_guard lock(guarded_mutex());
  if (mark == 0 || mark > marks_) die("a mark is waited for that was never made");
  while (reached_ < mark)
    if (!run_one()) return false;
  return true;
}

bool GuardedStream::run_one() {
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
