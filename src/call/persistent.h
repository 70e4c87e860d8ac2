// SPDX-License-Identifier: BSD-3-Clause
// Persistent sums: what others may ask of them, and their end.
#pragma once
#include <cstdint>
#include <string>

#include "comm/communicator.h"

namespace slimpi::call {

// While this object lives, MPI frees the program's request. If it is a persistent sum, that ends.
class PersistentEnd {
 public:
  explicit PersistentEnd(const void* request);
  ~PersistentEnd();
  PersistentEnd(const PersistentEnd&) = delete;
  PersistentEnd& operator=(const PersistentEnd&) = delete;

 private:
  std::uint64_t staged_ = 0;
  void* one_ = nullptr;
};

// The private communicator of the persistent sum that sums the named tensor; null if there is none.
comm::Communicator* find_persistent(const comm::Communicator& communicator,
                                    const std::string& name);

// MPI_Finalize was called; see Communicator::end_calls().
void end_persistent();

// MPI ends; the requests of persistent sums are not used any more.
void abandon_persistent();

}  // namespace slimpi::call
