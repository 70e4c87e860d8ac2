// SPDX-License-Identifier: BSD-3-Clause
// Handles in the program's memory, of the size that its MPI has.
#pragma once
#include <cstddef>
#include <cstring>

#include "mpi/abi.h"

namespace slimpi::mpi {

inline std::size_t handle_bytes() {
  return abi.handle_bits == ~Word(0) ? sizeof(Word) : sizeof(int);
}

// One of an array of handles.
template <typename Handle>
Handle read_at(const void* handles, int index) {
  return read<Handle>(static_cast<const std::byte*>(handles) + handle_bytes() * std::size_t(index));
}

template <typename Handle>
void write(void* pointer, Handle handle) {
  std::memcpy(pointer, &handle, handle_bytes());
}

}  // namespace slimpi::mpi
