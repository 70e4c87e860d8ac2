// SPDX-License-Identifier: BSD-3-Clause
#include "base/thread.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>

namespace slimpi {

namespace {

constexpr std::size_t kLeast = std::size_t(1) << 20;          // bytes of a stack
constexpr std::size_t kUnlimited = std::size_t(64) << 20;     // if the main thread's has no limit
constexpr std::size_t kAfterRefusal[] = {16 << 20, 2 << 20};  // if there is no room for more

std::size_t stack_bytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  return std::max<std::size_t>(limit.rlim_cur, kLeast);
}

// Returns all signals except those of faults. The program's handler may repair a fault, for example
// to find out which pages are written.
sigset_t asynchronous_signals() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
    sigdelset(&signals, fault);
  return signals;
}

void* body(void* run) {
  const sigset_t blocked = asynchronous_signals();
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  reinterpret_cast<void (*)()>(run)();
  return nullptr;
}

bool start_with_stack(pthread_t* thread, void (*run)(), std::size_t bytes) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setstacksize(&attributes, bytes);
  const int code = pthread_create(thread, &attributes, &body, reinterpret_cast<void*>(run));
  pthread_attr_destroy(&attributes);
  return code == 0;
}

}  // namespace

bool start_thread(pthread_t* thread, void (*run)()) {
  // The new thread inherits the mask, so no signal arrives there before body() has set its own.
  sigset_t every, before;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  const std::size_t bytes = stack_bytes();
  bool started = start_with_stack(thread, run, bytes);
  for (const std::size_t less : kAfterRefusal)
    started = started || (bytes > less && start_with_stack(thread, run, less));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace slimpi
