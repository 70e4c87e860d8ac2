// SPDX-License-Identifier: BSD-3-Clause
#include "call/entry.h"
#include "intercept/catch_all.h"
#include "intercept/fortran.h"

namespace slimpi::intercept {

namespace {
// Without memory the keys have no effect, and the program gets an error.
int take_info(Comm comm, Info info) {
  int code = 0;
  const Status status = catch_all([&] { code = call::take_info(comm, info); });
  if (status != Status::ok) (void)catch_all([&] { code = call::fail_on(comm, status); });
  return code;
}

int set_info(const auto& next, Word comm, Word info) {
  // Nonblocking sums that are in flight were begun with the options before.
  if (call::sums_in_flight()) (void)catch_all([&] { call::wait_for_sums_on(cut<Comm>(comm)); });
  const int code = next(comm, info);
  return code == 0 ? take_info(cut<Comm>(comm), cut<Info>(info)) : code;
}

int dup_with_info(const auto& next, Word comm, Word info, void* made) {
  const int code = next(comm, info, made);
  return code == 0 ? take_info(mpi::read<Comm>(made), cut<Info>(info)) : code;
}
}  // namespace

SLIMPI_BOTH(Comm_set_info, set_info, (Word comm, Word info), comm, info)
SLIMPI_BOTH(Comm_dup_with_info, dup_with_info, (Word comm, Word info, void* made), comm, info, made)

SLIMPI_F08(comm_set_info, (const int* comm, const int* info, int* error),
           set_info(next, Word(*comm), Word(*info)), comm, info)
SLIMPI_F08(comm_dup_with_info, (const int* comm, const int* info, int* made, int* error),
           dup_with_info(next, Word(*comm), Word(*info), made), comm, info, made)

}  // namespace slimpi::intercept
