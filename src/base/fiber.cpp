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
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "base/thread.h"

namespace slimpi {

namespace {

thread_local Fiber* t_fiber = nullptr;

std::atomic<void (*)()> g_run{nullptr};

std::size_t page_bytes() {
  static const auto bytes = std::size_t(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

// Returns the bytes of a stack. Most of a small stack is for the program's signal handlers, which
// run on it if they interrupt the fiber. A large stack has the size limit of the process's stacks,
// but at least 1 and at most 16 MiB. Where on_threads_stack() cannot change stacks, every stack is
// large.
std::size_t Fiber::bytes_of(Stack stack) {
  static constexpr std::size_t kSmall = std::size_t(1) << 20;
  static constexpr std::size_t kLeast = kSmall, kMost = std::size_t(16) << 20;
  static const std::size_t large = [] {
    rlimit limit{};
    if (getrlimit(RLIMIT_STACK, &limit) != 0) return kLeast;
    return std::clamp<std::size_t>(limit.rlim_cur, kLeast, kMost) / page_bytes() * page_bytes();
  }();
#ifdef SLIMPI_OWN_SWITCH
  if (stack == Stack::small) return kSmall;
#endif
  return large;
}

#ifdef SLIMPI_OWN_SWITCH

extern "C" {
// Defined in switch_stacks.S. slimpi_make_stack() returns the stack pointer of a function that has
// yet to begin.
void* slimpi_make_stack(void* end, void (*function)(void*), void* argument);
void slimpi_switch_stacks(void** from, void* to);
void slimpi_call_on_stack(void* stack, void (*function)(void*), void* argument);
}

void Fiber::change(Context* from, Context* to) {
  slimpi_switch_stacks(from, *to);
}

#else

// swapcontext() sets the signal mask that `to` has, so `to` gets the thread's mask first.
void Fiber::change(Context* from, Context* to) {
  pthread_sigmask(SIG_BLOCK, nullptr, &to->uc_sigmask);
  swapcontext(from, to);
}

#endif

// Tells the sanitizers about each change of stacks: depart() before it and arrive() after it. No
// other function may be called between depart() and change().
struct Fiber::Sanitizer {
#ifdef __SANITIZE_THREAD__
  static void begin(Fiber& fiber) {
    fiber.seen_.handle = __tsan_create_fiber(0);
  }
  static void end(Fiber& fiber) {
    __tsan_destroy_fiber(fiber.seen_.handle);
  }
  [[gnu::always_inline]] static void depart(Seen& from, const Seen& to) {
    (void)from;
    __tsan_switch_to_fiber(to.handle, 0);
  }
  static void arrive(const Seen&, Seen&) {}
  static void entering(Fiber& fiber) {
    fiber.entered_from_seen_.handle = __tsan_get_current_fiber();
  }
#elif defined(__SANITIZE_ADDRESS__)
  static void begin(Fiber& fiber) {
    fiber.seen_ = {nullptr, fiber.memory_ + page_bytes(), fiber.bytes_};
  }
  static void end(Fiber&) {}
  static void depart(Seen& from, const Seen& to) {
    __sanitizer_start_switch_fiber(&from.handle, to.stack, to.bytes);
  }
  static void arrive(const Seen& here, Seen& from) {
    __sanitizer_finish_switch_fiber(here.handle, &from.stack, &from.bytes);
  }
  static void entering(Fiber&) {}
#else
  static void begin(Fiber&) {}
  static void end(Fiber&) {}
  static void depart(Seen&, const Seen&) {}
  static void arrive(const Seen&, Seen&) {}
  static void entering(Fiber&) {}
#endif
};

Fiber::~Fiber() {
  release();
}

void Fiber::release() {
  if (memory_ != nullptr) munmap(memory_, bytes_ + page_bytes());
  memory_ = nullptr;
  bytes_ = 0;
}

// Allocates a stack of at least `bytes`, with a protected page below it. Refuses huge pages,
// because the first touch of one would take 2 MiB.
void Fiber::reserve(std::size_t bytes) {
  if (bytes <= bytes_) return;
  release();
  void* const memory = mmap(nullptr, bytes + page_bytes(), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  madvise(memory, bytes + page_bytes(), MADV_NOHUGEPAGE);
  mprotect(memory, page_bytes(), PROT_NONE);
  memory_ = static_cast<std::byte*>(memory);
  bytes_ = bytes;
}

void Fiber::prepare(void (*body)(void*), void* argument, Stack stack) {
  reserve(bytes_of(stack));
  body_ = body;
  argument_ = argument;
  ended_ = false;
  Sanitizer::begin(*this);
#ifdef SLIMPI_OWN_SWITCH
  own_ = slimpi_make_stack(
      memory_ + page_bytes() + bytes_, [](void* self) { static_cast<Fiber*>(self)->begin(); },
      this);
#else
  getcontext(&own_);
  own_.uc_stack.ss_sp = memory_ + page_bytes();
  own_.uc_stack.ss_size = bytes_;
  own_.uc_link = nullptr;
  // makecontext() passes ints only, so the pointer is passed in two parts.
  const auto self = std::uint64_t(reinterpret_cast<std::uintptr_t>(this));
  void (*const begin)(unsigned, unsigned) = [](unsigned high, unsigned low) {
    reinterpret_cast<Fiber*>(std::uintptr_t(std::uint64_t(high) << 32 | std::uint64_t(low)))
        ->begin();
  };
  makecontext(&own_, reinterpret_cast<void (*)()>(begin), 2, unsigned(self >> 32), unsigned(self));
#endif
}

void Fiber::begin() {
  Sanitizer::arrive(seen_, entered_from_seen_);
  body_(argument_);
  ended_ = true;
  Sanitizer::depart(seen_, entered_from_seen_);
  change(&own_, &entered_from_);
}

// Disables the cancellation of the thread while the body runs, because a cancellation would unwind
// the fiber's stack instead of the thread's own.
bool Fiber::enter() {
  int cancellation = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
  auto* const exceptions = reinterpret_cast<Exceptions*>(abi::__cxa_get_globals());
  std::swap(t_locals, locals_);
  std::swap(*exceptions, exceptions_);
  t_fiber = this;
  Sanitizer::entering(*this);
  Sanitizer::depart(entered_from_seen_, seen_);
  change(&entered_from_, &own_);
  Sanitizer::arrive(entered_from_seen_, seen_);
  t_fiber = nullptr;
  std::swap(*exceptions, exceptions_);
  std::swap(t_locals, locals_);
  pthread_setcancelstate(cancellation, nullptr);
  if (ended_) Sanitizer::end(*this);
  return !ended_;
}

bool Fiber::inside() {
  return t_fiber != nullptr;
}

// The code after leave() may run in another thread, so it must not use thread-local values from
// before.
[[gnu::noinline]] void Fiber::leave() {
  Fiber* const self = t_fiber;
  if (self->outside_) return;
  Sanitizer::depart(self->seen_, self->entered_from_seen_);
  change(&self->own_, &self->entered_from_);
  Sanitizer::arrive(self->seen_, self->entered_from_seen_);
}

// With ucontext's functions, the function runs on the stack of the fiber, which is a large one.
void Fiber::call_outside(void (*function)(void*), void* argument) {
  Fiber* const self = t_fiber;
  if (self->outside_) return function(argument);
  struct Outside {
    explicit Outside(bool& its_flag) : flag(its_flag) { flag = true; }
    ~Outside() { flag = false; }
    bool& flag;
  } const outside(self->outside_);
#ifdef SLIMPI_OWN_SWITCH
  slimpi_call_on_stack(self->entered_from_, function, argument);
#else
  function(argument);
#endif
}

namespace {

// A function that another thread calls on behalf of wait_for_blocking().
struct BlockingCall {
  explicit BlockingCall(std::function<void()> its_function) : function(std::move(its_function)) {}
  const std::function<void()> function;
  std::atomic<bool> done{false}, left{false};  // left: has returned or is abandoned
};

// The threads that run blocking calls. An idle thread waits kSpareTime for its next call, because
// on a busy machine a new thread may get its first core much later than a waiting one.
struct BlockingThreads {
  static constexpr auto kSpareTime = std::chrono::seconds(1);

  bool run(const std::shared_ptr<BlockingCall>& call);
  void serve();

  std::mutex mutex;  // guards all members below
  std::condition_variable begins, ends;
  std::deque<std::shared_ptr<BlockingCall>> calls;  // calls that no thread has begun
  std::size_t idle = 0;                             // threads that wait for a call
  std::uint64_t ended = 0;                          // calls that have returned
};

// Returns the only object. It is never destroyed, because its threads may outlive main().
BlockingThreads& blocking_threads() {
  static auto* const made = new BlockingThreads;
  return *made;
}

// Returns false if no thread can be started.
bool BlockingThreads::run(const std::shared_ptr<BlockingCall>& call) {
  const std::lock_guard lock(mutex);
  calls.push_back(call);
  ++g_blocking;
  if (calls.size() > idle) {
    pthread_t thread;
    if (!start_thread(&thread, [] { blocking_threads().serve(); })) {
      calls.pop_back();
      --g_blocking;
      return false;
    }
    pthread_detach(thread);
  }
  begins.notify_one();
  return true;
}

void BlockingThreads::serve() {
  std::unique_lock lock(mutex);
  for (;;) {
    ++idle;
    const bool called = begins.wait_for(lock, kSpareTime, [&] { return !calls.empty(); });
    --idle;
    if (!called) return;
    const std::shared_ptr<BlockingCall> call = std::move(calls.front());
    calls.pop_front();
    lock.unlock();
    call->function();
    --g_blocking;
    call->done.store(true, std::memory_order_release);
    if (call->left.exchange(true)) --g_abandoned;
    lock.lock();
    ++ended;
    ends.notify_all();
  }
}

}  // namespace

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
  std::shared_ptr<BlockingCall> call;
  bool begun = false;
  try {
    call = std::make_shared<BlockingCall>(function);
    begun = blocking_threads().run(call);
  } catch (const std::exception&) {
  }
  if (!begun) {
    // No thread can be started, so this one calls the function, which may block until the other
    // ranks make the same call of MPI.
    function();
    return Status::ok;
  }
  const Status status = wait(call->done);
  if (status == Status::ok) return status;
  ++g_abandoned;
  if (call->left.exchange(true)) --g_abandoned;
  return status;
}

void sleep_beside_blocking(std::chrono::nanoseconds time) {
  thread_local std::uint64_t seen = 0;
  BlockingThreads& all = blocking_threads();
  std::unique_lock lock(all.mutex);
  all.ends.wait_for(lock, time, [&] { return all.ended != seen; });
  seen = all.ended;
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
