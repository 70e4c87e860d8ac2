// SPDX-License-Identifier: BSD-3-Clause
// A Fiber runs a function on a stack of its own. A thread can leave the function in the middle, and
// the same or another thread can later continue it there. Nonblocking sums run in fibers, which
// they leave at every wait while the program computes (call/queue.h). The per-thread state of a
// call moves with its fiber: CallLocals, the floating-point environment, and exceptions that are
// being handled.
#pragma once
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define SLIMPI_OWN_SWITCH  // switch_stacks.S; the sanitizers follow only ucontext's functions
#else
#include <ucontext.h>
#endif

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <type_traits>

#include "base/call_locals.h"
#include "base/status.h"

namespace slimpi {

class Fiber {
 public:
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // How much stack the body needs: small for slimpi's own code, which calls MPI by
  // on_threads_stack(); large if code of the program (a hook) or of a GPU's driver runs in the
  // fiber, too.
  enum class Stack { small, large };

  // Makes the next enter() start body(argument), which must not throw, in the floating-point
  // environment of prepare()'s caller. An earlier body must have ended. Throws std::bad_alloc if
  // there is no memory for the stack.
  void prepare(void (*body)(void*), void* argument, Stack stack);

  // Runs the body until it leaves the fiber or ends; returns false if it has ended. Must not be
  // called inside a fiber, nor by two threads at once.
  bool enter();

  // Returns whether the calling thread runs a fiber.
  static bool inside();

  // Called by the body to return from enter(). The body continues after leave() at the next
  // enter(). Does nothing below call_outside().
  static void leave();

  // Called inside a fiber: calls function(argument) on the stack of the thread that has entered the
  // fiber. The program has chosen the size of that stack, so its own code can run there. The
  // function cannot leave the fiber.
  static void call_outside(void (*function)(void*), void* argument);

 private:
  // Where a suspended function continues.
#ifdef SLIMPI_OWN_SWITCH
  using Context = void*;  // the stack pointer; the registers are on the stack
#else
  using Context = ucontext_t;
#endif
  static void change(Context* from, Context* to);
  static std::size_t bytes_of(Stack stack);
  void reserve(std::size_t bytes);
  void release();
  void begin();

  std::byte* memory_ = nullptr;  // the memory of the stack
  std::size_t bytes_ = 0;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool ended_ = true;
  bool outside_ = false;  // inside call_outside()
  Context own_{}, entered_from_{};
  // The two stacks as a sanitizer sees them. ThreadSanitizer treats a fiber as a thread with this
  // handle; AddressSanitizer keeps data about a stack while other code runs.
  struct Seen {
    void* handle = nullptr;
    const void* stack = nullptr;  // the lowest byte
    std::size_t bytes = 0;
  } seen_, entered_from_seen_;
  struct Sanitizer;
  CallLocals locals_;
  struct Exceptions {  // the layout of the C++ ABI's __cxa_eh_globals
    void* caught = nullptr;
    unsigned uncaught = 0;
  } exceptions_;
};

// Calls function(), if need be by Fiber::call_outside(). Every call of MPI is made in this way,
// because MPI may call functions of the program, such as an MPI_Op of another request.
template <typename Function>
void on_threads_stack(const Function& function) {
  if (!Fiber::inside()) return function();
  Fiber::call_outside([](void* one) { (*static_cast<const Function*>(one))(); },
                      const_cast<Function*>(&function));
}

// Calls function(argument), which may block in MPI. Inside a fiber another thread calls it while
// the fiber is left, so that the program is not blocked. That thread has no CallLocals, so the
// function must get all that it needs through `argument`.
void call_blocking(void (*function)(void*), void* argument);

template <typename Function>
void call_blocking(Function&& function) {
  call_blocking([](void* one) { (*static_cast<std::remove_reference_t<Function>*>(one))(); },
                &function);
}

// Called inside a fiber. Runs function(), which may never return, in another thread. Meanwhile this
// fiber is in wait(done), whose status is the result. wait() must return ok once `done` is true, or
// a failure at any time; after a failure nothing waits for the other thread any more.
Status wait_for_blocking(std::function<void()> function,
                         const std::function<Status(const std::atomic<bool>& done)>& wait);

// The number of functions that call_blocking() and wait_for_blocking() run in other threads and
// that have not returned yet.
inline constinit std::atomic<int> g_blocking{0};

// The number of functions counted by g_blocking that wait_for_blocking() no longer waits for.
inline constinit std::atomic<int> g_abandoned{0};

// Called outside fibers by a thread that polls for sums while functions of g_blocking run. Sleeps
// for at most `time`, but wakes as soon as one of these functions has returned since this thread's
// last call.
void sleep_beside_blocking(std::chrono::nanoseconds time);

// The number of fibers in flight (begun and not ended) in all threads.
inline constinit std::atomic<int> g_fibers{0};

// Called between two polls by code that waits. Inside a fiber, leaves the fiber, and returns true
// once it is entered again. Elsewhere, runs the fibers in flight and returns false.
bool let_fibers_run();

// Adds `change` to the number of fibers in flight. As long as that number is not 0,
// let_fibers_run() calls run(), which enters these fibers and must not throw.
void count_fibers(int change, void (*run)());

}  // namespace slimpi
