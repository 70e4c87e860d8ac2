// SPDX-License-Identifier: BSD-3-Clause
// MPI_Session_init and MPI_Session_finalize, intercepted only to count the open sessions, and
// MPI_Finalize, only to know that it runs.
#include "call/entry.h"
#include "intercept/catch_all.h"
#include "intercept/fortran.h"

using slimpi::call::Finalizing;
using slimpi::call::session_closed;
using slimpi::call::session_opened;
using slimpi::call::sums_in_flight;
using slimpi::call::Word;
using slimpi::intercept::catch_all;

namespace {

int init(int (*next)(Word, Word, void*), Word info, Word handler, void* session) {
  const int code = next(info, handler, session);
  if (code == 0) session_opened();
  return code;
}

int finalize_session(int (*next)(void*), void* session) {
  const int code = next(session);
  if (code == 0) (void)catch_all(session_closed);
  return code;
}

int finalize(int (*next)()) {
  if (sums_in_flight()) (void)catch_all(slimpi::call::wait_for_all_sums);
  const Finalizing finalizing;
  return next();
}

}  // namespace

SLIMPI_BOTH(Session_init, init, (Word info, Word handler, void* session), info, handler, session)
SLIMPI_BOTH(Session_finalize, finalize_session, (void* session), session)
SLIMPI_BOTH(Finalize, finalize, ())

// MPICH's mpi_f08 module calls PMPI_ names directly; `error` may be absent.
SLIMPI_EXPORT void mpi_session_init_f08_(const int* info, const int* handler, int* session,
                                         int* error) {
  int own = 0;
  int* const code = error != nullptr ? error : &own;
  SLIMPI_NEXT("mpi_session_init_f08_", void(const int*, const int*, int*, int*))
  (info, handler, session, code);
  if (*code == 0 && !slimpi::mpi::abi.fortran_calls_pmpi) session_opened();
}

SLIMPI_EXPORT void mpi_session_finalize_f08_(int* session, int* error) {
  int own = 0;
  int* const code = error != nullptr ? error : &own;
  SLIMPI_NEXT("mpi_session_finalize_f08_", void(int*, int*))(session, code);
  if (*code == 0 && !slimpi::mpi::abi.fortran_calls_pmpi) (void)catch_all(session_closed);
}

SLIMPI_EXPORT void mpi_finalize_f08_(int* error) {
  if (sums_in_flight()) (void)catch_all(slimpi::call::wait_for_all_sums);
  const Finalizing finalizing;
  SLIMPI_NEXT("mpi_finalize_f08_", void(int*))(error);
}
