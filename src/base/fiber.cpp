// SPDX-License-Identifier: BSD-3-Clause
#include "base/fiber.h"

#include <cxxabi.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <thread>
#include <utility>

namespace slimpi {

namespace {

thread_local Fiber* t_fiber = nullptr;

std::atomic<void (*)()> g_run{nullptr};

// Tells ThreadSanitizer about fibers: it follows each fiber as it follows a thread.
#ifdef __SANITIZE_THREAD__
struct Seen {
  static void* begin() { return __tsan_create_fiber(0); }
  static void end(void* fiber) { __tsan_destroy_fiber(fiber); }
  // The caller must call no other function between this one and the change of stacks.
  [[gnu::always_inline]] static void change(void* to) { __tsan_switch_to_fiber(to, 0); }
  static void* current() { return __tsan_get_current_fiber(); }
};
#else
struct Seen {
  static void* begin() { return nullptr; }
  static void end(void*) {}
  static void change(void*) {}
  static void* current() { return nullptr; }
};
#endif

std::size_t page_bytes() {
  static const auto bytes = std::size_t(sysconf(_SC_PAGESIZE));
  return bytes;
}

// Returns the bytes of a fiber's stack, 1 to 16 MiB. Within these limits it is as long as the stack
// of the first thread may be, because MPI calls functions of the program in a fiber, too, such as
// an MPI_Op. Pages that are not touched cost nothing. A protected page lies below the stack.
std::size_t stack_bytes() {
  static constexpr std::size_t kLeast = std::size_t(1) << 20, kMost = std::size_t(16) << 20;
  static const std::size_t bytes = [] {
    rlimit limit{};
    if (getrlimit(RLIMIT_STACK, &limit) != 0) return kLeast;
    return std::clamp<std::size_t>(limit.rlim_cur, kLeast, kMost) / page_bytes() * page_bytes();
  }();
  return bytes;
}

}  // namespace

Fiber::Fiber() {
  void* const memory = mmap(nullptr, stack_bytes() + page_bytes(), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, page_bytes(), PROT_NONE);
  memory_ = static_cast<std::byte*>(memory);
}

Fiber::~Fiber() {
  munmap(memory_, stack_bytes() + page_bytes());
}

void Fiber::prepare(void (*body)(void*), void* argument) {
  body_ = body;
  argument_ = argument;
  ended_ = false;
  seen_ = Seen::begin();
  getcontext(&own_);
  own_.uc_stack.ss_sp = memory_ + page_bytes();
  own_.uc_stack.ss_size = stack_bytes();
  own_.uc_link = nullptr;
  // makecontext passes ints only, so a pointer comes in two parts.
  const auto self = std::uint64_t(reinterpret_cast<std::uintptr_t>(this));
  makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::begin), 2, unsigned(self >> 32),
              unsigned(self));
}

void Fiber::begin(unsigned high, unsigned low) {
  auto* const self =
      reinterpret_cast<Fiber*>(std::uintptr_t(std::uint64_t(high) << 32 | std::uint64_t(low)));
  self->body_(self->argument_);
  self->ended_ = true;
  Seen::change(self->entered_from_seen_);
  setcontext(&self->entered_from_);
}

// Disables the cancellation of the thread while the function runs: a cancellation would unwind the
// fiber's stack, not the thread's own.
bool Fiber::enter() {
  int cancellation = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
  auto* const exceptions = reinterpret_cast<Exceptions*>(abi::__cxa_get_globals());
  std::swap(t_locals, locals_);
  std::swap(*exceptions, exceptions_);
  t_fiber = this;
  entered_from_seen_ = Seen::current();
  Seen::change(seen_);
  swapcontext(&entered_from_, &own_);
  t_fiber = nullptr;
  std::swap(*exceptions, exceptions_);
  std::swap(t_locals, locals_);
  pthread_setcancelstate(cancellation, nullptr);
  if (ended_) Seen::end(seen_);
  return !ended_;
}

bool Fiber::inside() {
  return t_fiber != nullptr;
}

// Code after leave() may run in another thread, so it must not use thread-local values from before.
[[gnu::noinline]] void Fiber::leave() {
  Fiber* const self = t_fiber;
  Seen::change(self->entered_from_seen_);
  swapcontext(&self->own_, &self->entered_from_);
}

void call_blocking(void (*function)(void*), void* argument) {
  if (!Fiber::inside()) {
    function(argument);
    return;
  }
  (void)wait_for_blocking([=] { function(argument); },
                          [](const std::atomic<bool>& done) {
                            while (!done.load(std::memory_order_acquire)) Fiber::leave();
                            return Status::ok;
                          });
}

Status wait_for_blocking(std::function<void()> function,
                         const std::function<Status(const std::atomic<bool>& done)>& wait) {
  struct State {
    std::atomic<bool> done{false}, left{false};  // left: the thread has ended or is abandoned
  };
  std::shared_ptr<State> state;
  std::thread thread;
  try {
    state = std::make_shared<State>();
    thread = std::thread([function, state] {
      // Blocks all signals, so that the program's signal handlers run only in its own threads.
      sigset_t every;
      sigfillset(&every);
      pthread_sigmask(SIG_SETMASK, &every, nullptr);
      ++g_blocking;
      function();
      --g_blocking;
      state->done.store(true, std::memory_order_release);
      if (state->left.exchange(true)) --g_abandoned;
    });
  } catch (const std::exception&) {
    // No thread can be made, so this thread calls the function. The function may block until the
    // other ranks make the same call of MPI.
    function();
    return Status::ok;
  }
  const Status status = wait(state->done);
  if (status == Status::ok) {
    thread.join();
    return status;
  }
  ++g_abandoned;
  if (state->left.exchange(true)) --g_abandoned;
  thread.detach();
  return status;
}

bool let_fibers_run() {
  if (g_fibers.load(std::memory_order_acquire) == 0) [[likely]]
    return false;
  if (Fiber::inside()) {
    Fiber::leave();
    return true;
  }
  g_run.load(std::memory_order_relaxed)();
  return false;
}

void count_fibers(int change, void (*run)()) {
  g_run.store(run, std::memory_order_relaxed);
  g_fibers.fetch_add(change, std::memory_order_release);
}

}  // namespace slimpi
