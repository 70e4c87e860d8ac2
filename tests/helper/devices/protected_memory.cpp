// SPDX-License-Identifier: BSD-3-Clause
#include "tests/helper/devices/protected_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace slimpi::test {

namespace {

constexpr unsigned char kPattern = 0xdb;

struct Region {
  std::size_t bytes;   // as the caller asked for
  std::size_t mapped;  // whole pages
  int file;            // file of the memory, which is mapped twice
  int open = 0;        // how many callers have opened the region
};

// The regions by their first address. The map is never destroyed, because programs free memory
// after static objects are gone.
std::map<std::uintptr_t, Region>& regions() {
  static auto* const all = new std::map<std::uintptr_t, Region>;
  return *all;
}
std::map<void*, std::size_t>& staging() {
  static auto* const all = new std::map<void*, std::size_t>;
  return *all;
}

std::size_t g_used = 0, g_limit = SIZE_MAX;
unsigned long g_allocations = 0;

std::map<std::uintptr_t, Region>::iterator find(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  auto found = regions().upper_bound(address);
  if (found == regions().begin()) return regions().end();
  --found;
  return address < found->first + found->second.mapped ? found : regions().end();
}

void protect(std::uintptr_t begin, const Region& region, int how) {
  if (mprotect(reinterpret_cast<void*>(begin), region.mapped, how) != 0) die("mprotect() failed");
}

// Returns how many bytes of addresses a region takes: the mapping that nobody can touch, the
// mapping for the device, and a page that belongs to no one.
std::size_t reserved(std::size_t mapped) {
  return 2 * mapped + std::size_t(sysconf(_SC_PAGESIZE));
}

// Maps a file of device memory twice.
void* map(int file, std::size_t bytes, std::size_t mapped) {
  void* const memory = mmap(nullptr, reserved(mapped), PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) die("mmap() failed");
  void* const device = static_cast<std::byte*>(memory) + mapped;
  if (mmap(memory, mapped, PROT_NONE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED ||
      mmap(device, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file,
           0) == MAP_FAILED)
    die("mmap() failed");
  regions()[reinterpret_cast<std::uintptr_t>(memory)] = {bytes, mapped, file};
  return memory;
}

void drop(std::map<std::uintptr_t, Region>::iterator region) {
  munmap(reinterpret_cast<void*>(region->first), reserved(region->second.mapped));
  close(region->second.file);
  regions().erase(region);
}

bool take(std::size_t bytes) {
  if (bytes > g_limit || g_used > g_limit - bytes) return false;
  g_used += bytes;
  ++g_allocations;
  return true;
}

}  // namespace

void die(const char* text) {
  std::fprintf(stderr, "protected device: %s\n", text);
  std::abort();
}

std::recursive_mutex& protected_mutex() {
  static auto* const mutex = new std::recursive_mutex;
  return *mutex;
}

void* protected_take(std::size_t bytes) {
  const std::lock_guard lock(protected_mutex());
  if (!take(bytes)) return nullptr;
  const auto page = std::size_t(sysconf(_SC_PAGESIZE));
  const std::size_t mapped = (bytes / page + 1) * page;  // a byte after it, at least, is no one's
  const int file = memfd_create("protected", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, off_t(mapped)) != 0) die("memfd_create() failed");
  void* const memory = map(file, bytes, mapped);
  std::memset(reach(memory), kPattern, mapped);
  return memory;
}

void protected_give_back(void* memory) {
  const std::lock_guard lock(protected_mutex());
  const auto found = regions().find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == regions().end()) die("memory is released that is not the device's");
  const Region& region = found->second;
  // The bytes after the allocation must still have the pattern; otherwise somebody wrote past its
  // end.
  const auto* bytes = static_cast<const unsigned char*>(reach(memory));
  for (std::size_t i = region.bytes; i < region.mapped; ++i)
    if (bytes[i] != kPattern) die("something was written behind an allocation");
  g_used -= region.bytes;
  drop(found);
}

void* staging_take(std::size_t bytes) {
  const std::lock_guard lock(protected_mutex());
  if (!take(bytes)) return nullptr;
  // Memory of the heap would be no driver's, so the memory is mapped. A length of 0 cannot be
  // mapped.
  void* const memory =
      mmap(nullptr, bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die("no memory");
  std::memset(memory, kPattern, bytes);
  staging()[memory] = bytes;
  return memory;
}

void staging_give_back(void* memory) {
  const std::lock_guard lock(protected_mutex());
  const auto found = staging().find(memory);
  if (found == staging().end()) die("staging memory is released that is not the device's");
  g_used -= found->second;
  munmap(memory, found->second + 1);
  staging().erase(found);
}

bool protected_owns(const void* pointer) {
  const std::lock_guard lock(protected_mutex());
  return find(pointer) != regions().end();
}

bool staging_owns(const void* pointer) {
  const std::lock_guard lock(protected_mutex());
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  for (const auto& [memory, bytes] : staging())
    if (const auto begin = reinterpret_cast<std::uintptr_t>(memory);
        address >= begin && address < begin + bytes)
      return true;
  return false;
}

std::size_t protected_used() {
  const std::lock_guard lock(protected_mutex());
  return g_used;
}

unsigned long protected_allocations() {
  const std::lock_guard lock(protected_mutex());
  return g_allocations;
}

void protected_limit(std::size_t bytes) {
  const std::lock_guard lock(protected_mutex());
  g_limit = bytes;
}

void protected_copy(void* to, const void* from, std::size_t bytes) {
  const std::lock_guard lock(protected_mutex());
  for (const void* pointer : {static_cast<const void*>(to), from})
    if (const auto found = find(pointer); found != regions().end())
      if (reinterpret_cast<std::uintptr_t>(pointer) - found->first + bytes > found->second.bytes)
        die("a copy goes beyond the end of an allocation");
  std::memmove(reach(to), reach(from), bytes);
}

const void* protected_reach(const void* pointer) {
  const std::lock_guard lock(protected_mutex());
  const auto found = find(pointer);
  if (found == regions().end()) return pointer;
  return static_cast<const std::byte*>(pointer) + found->second.mapped;
}

}  // namespace slimpi::test

extern "C" int slimpi_protected_lend(const void* memory, int open) {
  using namespace slimpi::test;
  const std::lock_guard lock(protected_mutex());
  const auto found = find(memory);
  if (found == regions().end()) return 0;
  if (open != 0 && found->second.open++ == 0)
    protect(found->first, found->second, PROT_READ | PROT_WRITE);
  if (open == 0 && --found->second.open == 0) protect(found->first, found->second, PROT_NONE);
  return 1;
}
