// SPDX-License-Identifier: BSD-3-Clause
// The definitions of MPI's functions that come after this library: another tool's, or MPI's.
#include "mpi/abi.h"

#include <string>

#include "base/exceptions.h"
#include "call/entry.h"
#include "mpi/api.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {
// "PMPIX_Allreduce_init" of "PMPI_Allreduce_init".
std::string experimental(std::string name) {
  return name.insert(name.find("MPI_") + 3, "X");
}
}  // namespace

void* next_definition(const char* name, std::atomic<void*>& known) {
  void* next = nullptr;
  // What the search throws leaves the function missing, for this call.
  (void)caught([&] {
    next = mpi::next_definition(name);
    // Open MPI had persistent collectives under this name before they were standard.
    if (next == nullptr) next = mpi::next_definition(experimental(name).c_str());
    if (next == nullptr)
      log_error(std::string(name) +
                " was called, but this process has no MPI with such a function");
  });
  if (next == nullptr) return reinterpret_cast<void*>(+[] { return mpi::abi.err_other; });
  known.store(next, std::memory_order_release);
  return next;
}

bool has_next(const char* name, std::atomic<int>& known) {
  bool has = false;
  const Status status = caught([&] {
    has = mpi::next_definition(name) != nullptr;
    if (has || mpi::next_definition("MPI_Allreduce") != nullptr) known = has ? 1 : -1;
  });
  return status == Status::ok && has;
}

int refuse_count(const char* name, std::int64_t count) {
  (void)caught([&] {
    log_error(std::string(name) + ": " + std::to_string(count) +
              " elements are more than this process's MPI can take");
  });
  return mpi::kErrCount;
}

}  // namespace slimpi::call
