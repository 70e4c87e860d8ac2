// SPDX-License-Identifier: BSD-3-Clause
// Fills the status of a message, for tests that replace MPI.
#pragma once
#include "mpi/abi.h"

namespace slimpi::test {

inline void fill(mpi::MessageStatus* status, int source, int tag) {
  int* const words = reinterpret_cast<int*>(status);
  words[mpi::abi.status.source] = source;
  words[mpi::abi.status.tag] = tag;
}

// Writes the answer to a call that asks for one value, and returns success.
template <typename T>
int put(T* to, T value) {
  *to = value;
  return mpi::kSuccess;
}

}  // namespace slimpi::test
