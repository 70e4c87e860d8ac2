// SPDX-License-Identifier: BSD-3-Clause
#include "intercept/names.h"

#include <string>

#include "mpi/api.h"
#include "mpi/search.h"
#include "observe/log.h"

namespace slimpi::intercept {

namespace {
// Returns "PMPIX_Allreduce_init" for "PMPI_Allreduce_init".
std::string experimental(std::string name) {
  return name.insert(name.find("MPI_") + 3, "X");
}
}  // namespace

void* next_definition(const char* name, std::atomic<void*>& known) {
  void* next = nullptr;
  // If the search throws, the result is the function below that reports an error.
  (void)caught([&] {
    next = mpi::next_definition(name);
    // Open MPI had persistent collectives under MPIX_ names before they were standard.
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

bool is_fortran_code(const void* address) {
  // Cache of the result for the library of the last caller, because most threads call from one
  // library.
  thread_local mpi::Word first = 0, end = 0;
  thread_local bool fortran = false;
  if (reinterpret_cast<mpi::Word>(address) - first >= end - first) {
    const mpi::Image image = mpi::image_of(address);
    first = image.first;
    end = image.end;
    fortran = image.name.starts_with("libmpi_mpifh") || image.name.starts_with("libmpi_usempi");
  }
  return fortran;
}

}  // namespace slimpi::intercept
