// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>

#include "call/entry.h"

namespace slimpi::call {

namespace {
// MPI calls the callbacks of a free in the thread that frees.
thread_local const Freeing* t_innermost = nullptr;
std::atomic<int> g_alive{0};  // of all threads; most processes have none at most times
}  // namespace

// Objects nest: callbacks may free other communicators.
Freeing::Freeing(mpi::Comm comm) : comm_(comm), outer_(t_innermost) {
  t_innermost = this;
  g_alive.fetch_add(1, std::memory_order_relaxed);
}

Freeing::~Freeing() {
  g_alive.fetch_sub(1, std::memory_order_relaxed);
  t_innermost = outer_;
}

bool Freeing::is_freeing(mpi::Comm comm) {
  // A thread sees its own increment at once, and needs no other's.
  if (g_alive.load(std::memory_order_relaxed) == 0) [[likely]]
    return false;
  for (const Freeing* one = t_innermost; one != nullptr; one = one->outer_)
    if (one->comm_ == comm) return true;
  return false;
}

}  // namespace slimpi::call
