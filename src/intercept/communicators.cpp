// SPDX-License-Identifier: BSD-3-Clause
// Functions of communicators. In MPI_Comm_free and MPI_Comm_disconnect slimpi waits for its sums on
// the communicator (finish_on), and notes which one is being freed (Freeing). These functions call
// the program's delete callbacks while MPI iterates over the attributes of the communicator, and
// slimpi must not read or set attributes then. So sums of callbacks on this communicator go to MPI,
// on all ranks, in whatever order the callbacks run: all ranks are inside the free together. The
// other two functions here give a communicator info keys, which may set options of slimpi.
#include "call/communicator_attribute.h"
#include "call/control.h"
#include "intercept/names.h"

namespace slimpi::intercept {

namespace {

int free_comm(const auto& next, void* comm) {
  if (comm == nullptr) return next(comm);
  (void)catch_all([&] { call::finish_on(read<Comm>(comm)); });
  const Freeing freeing(read<Comm>(comm));
  return next(comm);
}

// Reads the info keys. If there is no memory, the keys have no effect and the program gets an
// error.
int take_info(Comm comm, Info info) {
  int code = 0;
  const Status status = catch_all([&] { code = call::take_info(comm, info); });
  if (status != Status::ok) (void)catch_all([&] { code = call::fail_on(comm, status); });
  return code;
}

int set_info(const auto& next, Word comm, Word info) {
  // Waits for the nonblocking sums in flight, which were begun with the old options.
  if (call::sums_in_flight()) (void)catch_all([&] { call::wait_for_sums_on(cut<Comm>(comm)); });
  const int code = next(comm, info);
  return code == 0 ? take_info(cut<Comm>(comm), cut<Info>(info)) : code;
}

int dup_with_info(const auto& next, Word comm, Word info, void* made) {
  const int code = next(comm, info, made);
  return code == 0 ? take_info(mpi::read<Comm>(made), cut<Info>(info)) : code;
}

}  // namespace

SLIMPI_BOTH(Comm_free, free_comm, (void* comm), comm)
SLIMPI_BOTH(Comm_disconnect, free_comm, (void* comm), comm)

SLIMPI_F08(comm_free, (int* comm, int* error), free_comm(next, comm), comm)
SLIMPI_F08(comm_disconnect, (int* comm, int* error), free_comm(next, comm), comm)

SLIMPI_BOTH(Comm_set_info, set_info, (Word comm, Word info), comm, info)
SLIMPI_BOTH(Comm_dup_with_info, dup_with_info, (Word comm, Word info, void* made), comm, info, made)

SLIMPI_F08(comm_set_info, (const int* comm, const int* info, int* error),
           set_info(next, Word(*comm), Word(*info)), comm, info)
SLIMPI_F08(comm_dup_with_info, (const int* comm, const int* info, int* made, int* error),
           dup_with_info(next, Word(*comm), Word(*info), made), comm, info, made)

}  // namespace slimpi::intercept
