// SPDX-License-Identifier: BSD-3-Clause
#include "call/entry.h"
#include "intercept/catch_all.h"
#include "intercept/fortran.h"

using slimpi::call::Word;
using slimpi::intercept::catch_all;
using slimpi::mpi::Comm;
using slimpi::mpi::cut;
using slimpi::mpi::Info;

namespace {
// Nonblocking sums that are in flight were begun with the options before.
void finish_sums(Comm comm) {
  if (slimpi::call::sums_in_flight())
    (void)catch_all([&] { slimpi::call::wait_for_sums_on(comm); });
}

// Without memory the keys have no effect, and the program gets an error.
int take_info(Comm comm, Info info) {
  int code = 0;
  const slimpi::Status status = catch_all([&] { code = slimpi::call::take_info(comm, info); });
  if (status != slimpi::Status::ok)
    (void)catch_all([&] { code = slimpi::call::fail_on(comm, status); });
  return code;
}

// Whether a handle of mpi_f08 is the number that C has. Elsewhere the PMPI_ names above act.
bool f08_handles_are_c() {
  slimpi::mpi::find_abi();
  return !slimpi::mpi::abi.fortran_calls_pmpi;
}

int set_info(int (*next)(Word, Word), Word comm, Word info) {
  finish_sums(cut<Comm>(comm));
  const int code = next(comm, info);
  return code == 0 ? take_info(cut<Comm>(comm), cut<Info>(info)) : code;
}

int dup_with_info(int (*next)(Word, Word, void*), Word comm, Word info, void* made) {
  const int code = next(comm, info, made);
  return code == 0 ? take_info(slimpi::mpi::read<Comm>(made), cut<Info>(info)) : code;
}
}  // namespace

SLIMPI_BOTH(Comm_set_info, set_info, (Word comm, Word info), comm, info)
SLIMPI_BOTH(Comm_dup_with_info, dup_with_info, (Word comm, Word info, void* made), comm, info, made)

// MPICH's mpi_f08 module calls PMPI_ names directly for functions without buffers, so its own names
// are intercepted. Fortran's handles are MPICH's integers; `error` may be absent.
SLIMPI_EXPORT void mpi_comm_set_info_f08_(const int* comm, const int* info, int* error) {
  int own = 0;
  int* const code = error != nullptr ? error : &own;
  finish_sums(cut<Comm>(Word(*comm)));
  SLIMPI_NEXT("mpi_comm_set_info_f08_", void(const int*, const int*, int*))(comm, info, code);
  if (*code == 0 && f08_handles_are_c())
    *code = take_info(cut<Comm>(Word(*comm)), cut<Info>(Word(*info)));
}

SLIMPI_EXPORT void mpi_comm_dup_with_info_f08_(const int* comm, const int* info, int* made,
                                               int* error) {
  int own = 0;
  int* const code = error != nullptr ? error : &own;
  SLIMPI_NEXT("mpi_comm_dup_with_info_f08_", void(const int*, const int*, int*, int*))
  (comm, info, made, code);
  if (*code == 0 && f08_handles_are_c())
    *code = take_info(cut<Comm>(Word(*made)), cut<Info>(Word(*info)));
}
