// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <mutex>

#include "base/fiber.h"
#include "device/device.h"
#include "device/process_memory.h"

namespace slimpi::device {

namespace {

// The rows besides the host's, which are few. Readers need no lock, because rows are never removed,
// and g_added is increased after the row is stored.
constexpr int kMaxAdded = 8;
std::atomic<const Device*> g_rows[kMaxAdded];
std::mutex g_adding;
std::atomic<bool> g_mpi_takes{false};

// The answers of locate() in the call that this thread is making. The struct is plain data, so that
// a new thread runs no constructor.
struct Known {
  const void* pointer;
  const Device* device;
  int ordinal;
  void* context;
  std::uint64_t generation;
};
constexpr int kKnown = 2;  // a call has two buffers
thread_local struct {
  bool inside;  // begin_call() was called
  int next;
  Known known[kKnown];
} t_call;

Location ask(const void* pointer, int added) {
  while (added-- > 0) {
    Location found(*g_rows[added].load(std::memory_order_relaxed));
    if (found.device->locate(pointer, &found)) return found;
  }
  return {};
}

}  // namespace

Status add(const Device& device) {
  const std::lock_guard lock(g_adding);
  const int added = g_added.load(std::memory_order_relaxed);
  for (int i = 0; i < added; ++i)
    if (g_rows[i].load(std::memory_order_relaxed) == &device) return Status::ok;
  if (added == kMaxAdded)
    return fail(Status::unsupported, "there is no room for another kind of memory");
  g_rows[added].store(&device, std::memory_order_relaxed);
  g_added.store(added + 1, std::memory_order_release);
  return Status::ok;
}

Location locate(const void* pointer) {
  const int added = g_added.load(std::memory_order_acquire);
  if (added == 0 || pointer == nullptr || in_process_memory(pointer)) [[likely]]
    return {};
  // Inside a fiber (a call on a stack of its own) these answers are not used, because t_call may
  // belong to another call there: the fiber may have moved to this thread, or a new call may have
  // begun on it.
  if (!t_call.inside || Fiber::inside()) return ask(pointer, added);
  for (const Known& known : t_call.known) {
    if (known.pointer != pointer) continue;
    Location found(*known.device, known.ordinal, known.context);
    found.generation = known.generation;
    return found;
  }
  const Location found = ask(pointer, added);
  t_call.known[t_call.next] = {pointer, found.device, found.ordinal, found.context,
                               found.generation};
  t_call.next = (t_call.next + 1) % kKnown;
  return found;
}

void begin_call() {
  if (others()) t_call = {.inside = true, .next = 0, .known = {}};
}

void set_mpi_takes_device_memory(bool takes) {
  g_mpi_takes.store(takes, std::memory_order_relaxed);
}

bool mpi_takes_device_memory() {
  return g_mpi_takes.load(std::memory_order_relaxed);
}

bool mpi_takes(const Device& device) {
  return !device.staged || mpi_takes_device_memory();
}

int count() {
  return g_added.load(std::memory_order_acquire) + 1;
}

const Device& at(int index) {
  const int added = g_added.load(std::memory_order_acquire);
  return index < added ? *g_rows[added - 1 - index].load(std::memory_order_relaxed) : host();
}

}  // namespace slimpi::device
