// SPDX-License-Identifier: BSD-3-Clause
#include "tests/helper/devices/emulated_cuda.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/helper/devices/protected_memory.h"

#undef threadIdx
#undef blockIdx

namespace slimpi::test {

EmulatedIndex g_emulated_thread, g_emulated_block;

namespace {

constexpr unsigned kMostThreads = 1024, kLanes = 32;
// The size is not a power of two: otherwise the threads' stacks would compete for a few lines of a
// cache.
constexpr std::size_t kStackBytes = (64 << 10) + 17 * 64;

// A barrier: threads wait here until all have arrived.
struct Barrier {
  unsigned arrived = 0, generation = 0;
};

struct Warp {
  Barrier barrier;
  int kind = 0;  // what the lanes that have arrived wait for
  // The first index is the parity of the barrier's number, because a lane may reach the next
  // barrier before another lane has left the present one.
  std::uint32_t values[2][kLanes] = {};
};

struct Fiber {
  ucontext_t start;
  jmp_buf place;
  bool started = false, done = true;
};

const EmulatedKernel* g_kernels = nullptr;

Fiber* g_fibers = nullptr;  // kMostThreads, made at first use and kept
Warp g_warps[kMostThreads / kLanes];
Barrier g_block;
jmp_buf g_scheduler;
unsigned g_threads = 0;
bool g_progress = false;  // has a fiber continued since the scheduler began this round?
const EmulatedKernel* g_kernel = nullptr;
const void* g_arguments = nullptr;

Fiber& current() {
  return g_fibers[g_emulated_thread.x];
}

void yield() {
  if (_setjmp(current().place) == 0) _longjmp(g_scheduler, 1);
}

// The function of a fiber, which runs one CUDA thread after the other.
void live() {
  for (;;) {
    g_kernel->run(g_arguments);
    current().done = true;
    g_progress = true;
    yield();
  }
}

void make_fibers() {
  g_fibers = new Fiber[kMostThreads];
  void* const stacks = mmap(nullptr, kMostThreads * kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks == MAP_FAILED) die("no memory for the threads of a block");
  for (unsigned i = 0; i < kMostThreads; ++i) {
    ucontext_t& start = g_fibers[i].start;
    getcontext(&start);
    start.uc_stack.ss_sp = static_cast<char*>(stacks) + i * kStackBytes;
    start.uc_stack.ss_size = kStackBytes;
    start.uc_link = nullptr;
    makecontext(&start, live, 0);
  }
}

void resume(unsigned thread) {
  Fiber& fiber = g_fibers[thread];
  g_emulated_thread.x = thread;
  if (_setjmp(g_scheduler) != 0) return;
  if (fiber.started) _longjmp(fiber.place, 1);
  fiber.started = true;
  setcontext(&fiber.start);
}

void run_block(bool descending) {
  for (unsigned i = 0; i < g_threads; ++i) g_fibers[i].done = false;
  std::fill(g_warps, g_warps + kMostThreads / kLanes, Warp{});
  g_block = {};
  for (bool left = true; left;) {
    left = false;
    g_progress = false;
    for (unsigned i = 0; i < g_threads; ++i) {
      const unsigned thread = descending ? g_threads - 1 - i : i;
      if (g_fibers[thread].done) continue;
      left = true;
      resume(thread);
    }
    if (left && !g_progress) die("a barrier in a kernel that not all threads reach");
  }
}

void meet(Barrier& barrier, unsigned members) {
  const unsigned generation = barrier.generation;
  if (++barrier.arrived == members) {
    barrier.arrived = 0;
    ++barrier.generation;
    g_progress = true;
    return;
  }
  while (barrier.generation == generation) yield();
}

// Stores this lane's value, waits for all lanes, and returns their values.
const std::uint32_t* exchange(int kind, std::uint32_t value) {
  Warp& warp = g_warps[g_emulated_thread.x / kLanes];
  if (warp.barrier.arrived == 0) warp.kind = kind;
  if (warp.kind != kind) die("lanes of a warp meet at different places in a kernel");
  std::uint32_t* const values = warp.values[warp.barrier.generation % 2];
  values[g_emulated_thread.x % kLanes] = value;
  meet(warp.barrier, kLanes);
  return values;
}

template <typename Number>
Number reduce(Number mine, bool greatest) {
  std::uint32_t bits;
  std::memcpy(&bits, &mine, sizeof bits);
  const int kind = 2 + 2 * int(greatest) + int(Number(-1) < 0);
  const std::uint32_t* const values = exchange(kind, bits);
  Number result = mine;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    Number value;
    std::memcpy(&value, &values[lane], sizeof value);
    if (greatest ? result < value : value < result) result = value;
  }
  return result;
}

}  // namespace

EmulatedKernel::EmulatedKernel(const char* name, std::size_t bytes,
                               void (*run)(const void* arguments))
    : name(name), bytes(bytes), run(run), next(g_kernels) {
  g_kernels = this;
}

const EmulatedKernel* find_emulated(const char* name) {
  for (const EmulatedKernel* kernel = g_kernels; kernel != nullptr; kernel = kernel->next)
    if (std::strcmp(kernel->name, name) == 0) return kernel;
  return nullptr;
}

void run_emulated(const EmulatedKernel& kernel, unsigned blocks, unsigned threads,
                  const void* arguments) {
  if (threads > kMostThreads || threads % kLanes != 0) die("a kernel is started with odd threads");
  if (g_fibers == nullptr) make_fibers();
  g_kernel = &kernel;
  g_arguments = arguments;
  g_threads = threads;
  for (g_emulated_block.x = 0; g_emulated_block.x < blocks; ++g_emulated_block.x)
    run_block(g_emulated_block.x % 2 != 0);
}

void meet_block() {
  meet(g_block, g_threads);
}

void meet_warp() {
  exchange(1, 0);
}

std::int32_t reduce_warp(std::int32_t value, bool greatest) {
  return reduce(value, greatest);
}
std::uint32_t reduce_warp(std::uint32_t value, bool greatest) {
  return reduce(value, greatest);
}
std::uint32_t add_warp(std::uint32_t value) {
  const std::uint32_t* const values = exchange(6, value);
  return std::accumulate(values, values + kLanes, 0u);
}
std::uint32_t shuffle_warp(std::uint32_t value, unsigned (*source)(unsigned, unsigned),
                           unsigned number) {
  const std::uint32_t* const values = exchange(7, value);
  const unsigned lane = g_emulated_thread.x % kLanes, from = source(lane, number);
  return values[from < kLanes ? from : lane];
}

}  // namespace slimpi::test
