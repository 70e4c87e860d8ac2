// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>

#include "call/entry.h"

namespace slimpi::call {

namespace {
// MPI calls the callbacks of a free in the thread that frees.
thread_local const Freeing* t_innermost = nullptr;
}  // namespace

// Objects nest: callbacks may free other communicators.
Freeing::Freeing(mpi::Comm comm) : comm_(comm), outer_(t_innermost) {
  t_innermost = this;
  alive_.fetch_add(1, std::memory_order_relaxed);
}

Freeing::~Freeing() {
  alive_.fetch_sub(1, std::memory_order_relaxed);
  t_innermost = outer_;
}

bool Freeing::frees(mpi::Comm comm) {
  for (const Freeing* one = t_innermost; one != nullptr; one = one->outer_)
    if (one->comm_ == comm) return true;
  return false;
}

}  // namespace slimpi::call
