// SPDX-License-Identifier: BSD-3-Clause
// The memory of the protected device: pages that no one can touch. The device itself reaches them
// elsewhere, by a second mapping of the same file.
#pragma once
#include <cstddef>
#include <mutex>

namespace slimpi::test {

// Says what the code under test did wrong, and aborts.
[[noreturn]] void die(const char* text);

// The lock is held while memory or a queue changes. Work may queue or wait for more work, so the
// lock is recursive.
std::recursive_mutex& protected_mutex();

// protected_take and staging_take fill the memory with a pattern and return null beyond the limit.
void* protected_take(std::size_t bytes);
void protected_give_back(void* memory);
void* staging_take(std::size_t bytes);
void staging_give_back(void* memory);

bool protected_owns(const void* pointer);
bool staging_owns(const void* pointer);
std::size_t protected_used();
unsigned long protected_allocations();
void protected_limit(std::size_t bytes);

// Copies memory of any kind, as the device does. Ends the program unless the touched device memory
// lies inside of one allocation on each side.
void protected_copy(void* to, const void* from, std::size_t bytes);

// Returns where the device reaches the pointer's memory; a pointer to memory of another kind is
// returned as it is.
const void* protected_reach(const void* pointer);
template <typename T>
T* reach(T* pointer) {
  return static_cast<T*>(const_cast<void*>(protected_reach(pointer)));
}

}  // namespace slimpi::test

// Opens the allocation that `memory` lies in to everyone, or closes it, for an MPI that takes
// device memory (aware_mpi.c). Returns 0 for memory that is not the device's.
extern "C" __attribute__((visibility("default"))) int slimpi_protected_lend(const void* memory,
                                                                            int open);
