// SPDX-License-Identifier: BSD-3-Clause
// The memory of the protected device: pages that no one can touch but who holds them Unlocked.
#pragma once
#include <cstddef>
#include <mutex>
#include <vector>

namespace slimpi::test {

// Says what the code under test did wrong, and aborts.
[[noreturn]] void die(const char* text);

// Held while memory is open or a queue changes; work may queue or wait for more work.
std::recursive_mutex& protected_mutex();

// Both fill the memory with a pattern and return null beyond the limit.
void* protected_take(std::size_t bytes);
void protected_give_back(void* memory);
void* staging_take(std::size_t bytes);
void staging_give_back(void* memory);

// Device memory that other processes may open, and theirs in this one, which is device memory, too.
// Opening gives null where it is not possible.
struct ProtectedOffer {
  int process, file;
  std::size_t bytes, mapped;
};
void protected_offer(const void* memory, ProtectedOffer* offer);
void* protected_open(const ProtectedOffer& offer);
void protected_close(void* memory);

bool protected_owns(const void* pointer);
bool staging_owns(const void* pointer);
std::size_t protected_used();
unsigned long protected_allocations();
void protected_limit(std::size_t bytes);

// A copy that dies unless what it touches of device memory is all inside of one allocation each.
void protected_copy(void* to, const void* from, std::size_t bytes);

// Opens the allocations that these pointers lie in, those that lie in any, for its lifetime.
class Unlocked {
 public:
  explicit Unlocked(const std::vector<const void*>& pointers);
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  std::vector<void*> opened_;
};

}  // namespace slimpi::test

// For an MPI that takes device memory (aware_mpi.c): opens the allocation that `memory` lies in, or
// closes it. Returns 0 for memory that is not the device's.
extern "C" __attribute__((visibility("default"))) int slimpi_protected_lend(const void* memory,
                                                                            int open);
