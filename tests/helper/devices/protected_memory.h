// SPDX-License-Identifier: BSD-3-Clause
// The memory of the protected device: pages that the program cannot touch. The device itself
// reaches the same memory at another address, by a second mapping of the same file.
#pragma once
#include <cstddef>
#include <mutex>

namespace slimpi::test {

// Prints what the code under test did wrong, and aborts.
[[noreturn]] void die(const char* text);

// Returns the lock that is held while memory or a queue changes. It is recursive, because work may
// queue more work or wait for it.
std::recursive_mutex& protected_mutex();

// protected_take and staging_take fill the memory with a pattern. They return null if the limit
// would be exceeded.
void* protected_take(std::size_t bytes);
void protected_give_back(void* memory);
void* staging_take(std::size_t bytes);
void staging_give_back(void* memory);

bool protected_owns(const void* pointer);
bool staging_owns(const void* pointer);
std::size_t protected_used();
unsigned long protected_allocations();
void protected_limit(std::size_t bytes);

// Copies memory of any kind, as the device does. Ends the program if bytes of device memory that
// are read or written are not all in one allocation.
void protected_copy(void* to, const void* from, std::size_t bytes);

// Returns the address at which the device reaches the pointer's memory. A pointer to other memory
// is returned unchanged.
const void* protected_reach(const void* pointer);
template <typename T>
T* reach(T* pointer) {
  return static_cast<T*>(const_cast<void*>(protected_reach(pointer)));
}

}  // namespace slimpi::test

// Opens the allocation that contains `memory` to everyone, or closes it again, for an MPI that
// takes device memory (aware_mpi.c). Returns 0 if the memory is not the device's.
extern "C" __attribute__((visibility("default"))) int slimpi_protected_lend(const void* memory,
                                                                            int open);
