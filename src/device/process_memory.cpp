// SPDX-License-Identifier: BSD-3-Clause
#include "device/process_memory.h"

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

// glibc's variables for the highest address of the main thread's stack (__libc_stack_end) and for
// the program break (__curbrk). __curbrk is always right, because every function that moves the
// break writes it: brk() and sbrk() of glibc and of UCX. sbrk(0) is not used, because it is a
// system call if UCX watches the heap.
extern "C" void* __libc_stack_end;
extern "C" void* __curbrk;

namespace slimpi::device {

namespace {

using Address = std::uintptr_t;

// How much of the main thread's stack, from its end down, in_process_memory() recognizes. The
// kernel maps nothing else within 128 MiB below that end, so this is safe.
constexpr Address kStack = Address(64) << 20;

// The addresses from `begin` up to, but not including, `end`.
struct Range {
  Address begin = 0, end = 0;
};

// Returns the addresses of the executable, including its zeroed data.
Range find_executable() {
  Range range;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        Range found{std::numeric_limits<Address>::max(), 0};
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          const Address begin = info->dlpi_addr + segment.p_vaddr;
          found.begin = std::min(found.begin, begin);
          found.end = std::max(found.end, begin + segment.p_memsz);
        }
        if (found.end != 0) *static_cast<Range*>(result) = found;
        return 1;  // the executable is the first object
      },
      &range);
  return range;
}

// Returns the start of the heap, field 47 of /proc/self/stat. Counts fields from the last ')' on,
// because field 2, the name of the process, may contain spaces and parentheses. If the file cannot
// be read, returns the greatest address, which makes the heap seem empty. Does not allocate.
Address find_heap() {
  char line[1024] = "";
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  const ssize_t bytes = file < 0 ? 0 : read(file, line, sizeof line - 1);
  if (file >= 0) close(file);
  const char* at = bytes > 0 ? std::strrchr(line, ')') : nullptr;
  for (int field = 2; at != nullptr && field < 47; ++field) {
    at = std::strchr(at, ' ');
    if (at != nullptr) ++at;
  }
  const Address begin = at != nullptr ? std::strtoull(at, nullptr, 10) : 0;
  return begin != 0 ? begin : std::numeric_limits<Address>::max();
}

std::atomic<bool> g_found{false};  // g_executable and g_heap are set and final
Range g_executable;
Address g_heap = 0;

[[gnu::noinline]] void find_places() {
  static const bool found = [] {
    g_executable = find_executable();
    g_heap = find_heap();
    return true;
  }();
  g_found.store(found, std::memory_order_release);
}

}  // namespace

bool in_process_memory(const void* pointer) {
  if (!g_found.load(std::memory_order_acquire)) [[unlikely]]
    find_places();
  const auto at = reinterpret_cast<Address>(pointer);
  if (at - g_executable.begin < g_executable.end - g_executable.begin) return true;
  if (at >= g_heap && at < reinterpret_cast<Address>(__curbrk)) return true;
  // The last test is for the main thread's stack. In another thread it fails, because the frame of
  // that thread is more than kStack below `end`.
  const auto frame = reinterpret_cast<Address>(__builtin_frame_address(0));
  const auto end = reinterpret_cast<Address>(__libc_stack_end);
  return at >= frame && at < end && end - frame < kStack;
}

}  // namespace slimpi::device
