// SPDX-License-Identifier: BSD-3-Clause
// A function on a stack of its own. It can be left in its middle and entered again later, also by
// another thread. What its call keeps in a thread goes with it: CallLocals, the floating-point
// environment, and exceptions that are being handled.
#pragma once
#include <ucontext.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <type_traits>

#include "base/call_locals.h"
#include "base/status.h"

namespace slimpi {

class Fiber {
 public:
  // Reserves the stack; throws std::bad_alloc.
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next enter() begins body(argument), which must not throw, in the floating-point environment
  // of this call. Only when nothing is begun.
  void prepare(void (*body)(void*), void* argument);

  // Runs the function until it leaves or ends. False: it has ended. Not inside a fiber, and in one
  // thread at a time.
  bool enter();

  // Whether the thread runs a fiber.
  static bool inside();

  // For the function: returns from enter(), and goes on at the next one.
  static void leave();

 private:
  static void begin(unsigned high, unsigned low);

  // A driver, a BLAS or callbacks of the program that MPI makes may need much. Pages that are not
  // touched cost nothing. Below it is a page that nobody may touch.
  static constexpr std::size_t kStackBytes = std::size_t(1) << 20;

  std::byte* memory_;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool ended_ = true;
  ucontext_t own_{}, entered_from_{};
  void *seen_ = nullptr, *entered_from_seen_ = nullptr;  // as a sanitizer knows these
  CallLocals locals_;
  struct Exceptions {  // as the C++ ABI has them
    void* caught = nullptr;
    unsigned uncaught = 0;
  } exceptions_;
};

// Calls function(argument), which may block in MPI. In a fiber another thread calls it, and the
// fiber is left meanwhile, so that nothing blocks the program. What it needs of this thread goes
// through `argument`: it has no ActiveCall and no FailureScope.
void call_blocking(void (*function)(void*), void* argument);

template <typename Function>
void call_blocking(Function&& function) {
  call_blocking([](void* one) { (*static_cast<std::remove_reference_t<Function>*>(one))(); },
                &function);
}

// In a fiber the same for what may never return: while function() runs in another thread,
// wait(done) waits for it. Returns its status; after a failure the thread is left behind.
Status wait_for_blocking(std::function<void()> function,
                         const std::function<Status(const std::atomic<bool>& done)>& wait);

// How many threads run a function of this kind.
inline constinit std::atomic<int> g_blocking{0};

// How many fibers are in flight, of all threads.
inline constinit std::atomic<int> g_fibers{0};

// For whoever waits, between two polls. Inside a fiber: leaves it, and returns true when it is
// entered again. Elsewhere: lets the fibers in flight go on, if there are any, and returns false.
bool let_fibers_run();

// How many fibers are in flight changes by `change`. While it is not 0, let_fibers_run() calls
// `run`, which must not throw.
void count_fibers(int change, void (*run)());

}  // namespace slimpi
