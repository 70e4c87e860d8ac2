// SPDX-License-Identifier: BSD-3-Clause
// Functions of communicators.
//
// In MPI_Comm_free and MPI_Comm_disconnect, slimpi waits for its sums on the communicator
// (finish_on()) and notes which communicator is being freed (Freeing). MPI calls the program's
// delete callbacks there while it iterates over the communicator's attributes, which slimpi then
// must not read or set. So sums that callbacks make on this communicator go to MPI. They do so on
// all ranks, in whatever order the callbacks run, because all ranks are inside the free together.
//
// The other two functions give a communicator info keys, which may set options of slimpi.
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

// Applies the info keys. If there is no memory for that, the keys have no effect and the program
// gets an error.
int take_info(Comm comm, Info info) {
  int code = 0;
  const Status status = catch_all([&] { code = call::take_info(comm, info); });
  if (status != Status::ok) (void)catch_all([&] { code = call::fail_on(comm, status); });
  return code;
}

int set_info(const auto& next, Word comm, Word info) {
  // The nonblocking sums in flight were begun with the old options, so wait for them.
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
