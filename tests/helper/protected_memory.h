// SPDX-License-Identifier: BSD-3-Clause
// The memory of the protected device: pages that no one can touch. The device itself reaches them
// elsewhere, by a second mapping of the same file.
#pragma once
#include <cstddef>
#include <mutex>

namespace slimpi::test {

// Says what the code under test did wrong, and aborts.
[[noreturn]] void die(const char* text);

// Held while memory or a queue changes; work may queue or wait for more work.
std::recursive_mutex& protected_mutex();

// Both fill the memory with a pattern and return null beyond the limit.
void* protected_take(std::size_t bytes);
void protected_give_back(void* memory);
void* staging_take(std::size_t bytes);
void staging_give_back(void* memory);

bool protected_owns(const void* pointer);
bool staging_owns(const void* pointer);
std::size_t protected_used();
unsigned long protected_allocations();
void protected_limit(std::size_t bytes);

// A copy by the device, of memory of any kind. Dies unless what it touches of device memory is all
// inside of one allocation each.
void protected_copy(void* to, const void* from, std::size_t bytes);

// Where the device reaches what the pointer points to: for memory of another kind, there.
const void* protected_reach(const void* pointer);
template <typename T>
T* reach(T* pointer) {
  return static_cast<T*>(const_cast<void*>(protected_reach(pointer)));
}

}  // namespace slimpi::test

// For an MPI that takes device memory (aware_mpi.c): opens the allocation that `memory` lies in to
// everyone, or closes it. Returns 0 for memory that is not the device's.
extern "C" __attribute__((visibility("default"))) int slimpi_protected_lend(const void* memory,
                                                                            int open);
