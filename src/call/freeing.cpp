// SPDX-License-Identifier: BSD-3-Clause
#include "call/entry.h"

namespace slimpi::call {

namespace {
thread_local const Freeing* t_innermost = nullptr;
}

// Objects nest: callbacks may free other communicators.
Freeing::Freeing(Word comm) : comm_(comm), outer_(t_innermost) {
  t_innermost = this;
}

Freeing::~Freeing() {
  t_innermost = outer_;
}

bool Freeing::is_freeing(Word comm) {
  for (const Freeing* one = t_innermost; one != nullptr; one = one->outer_)
    if (one->comm_ == comm) return true;
  return false;
}

}  // namespace slimpi::call
