// SPDX-License-Identifier: BSD-3-Clause
// Functions for persistent sums that other files of this directory call: they end a sum, and find
// the sum of a tensor.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "call/held.h"
#include "comm/communicator.h"

namespace slimpi::call {

// Marks that MPI frees the program's request while this object lives. If the request is that of a
// persistent sum, the sum ends. If it is that of a nonblocking sum, no function will complete it,
// so a failure of the sum is not kept.
class PersistentEnd {
 public:
  explicit PersistentEnd(const void* handle);
  ~PersistentEnd();
  PersistentEnd(const PersistentEnd&) = delete;
  PersistentEnd& operator=(const PersistentEnd&) = delete;

 private:
  std::uint64_t staged_ = 0;
  std::shared_ptr<Held> held_;
};

// Returns the private communicator of the persistent sum of the named tensor; null if there is
// none.
comm::Communicator* find_persistent(const comm::Communicator& communicator,
                                    const std::string& name);

// Notes that this rank starts no persistent sum again; ranks that wait for it later get an error.
void end_persistent();

// Forgets the requests of persistent sums, because MPI ends.
void abandon_persistent();

}  // namespace slimpi::call
