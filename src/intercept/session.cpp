// SPDX-License-Identifier: BSD-3-Clause
// MPI_Session_init and MPI_Session_finalize, intercepted only to count the open sessions, and
// MPI_Finalize, only to know that it runs.
#include "call/entry.h"
#include "intercept/catch_all.h"
#include "intercept/fortran.h"

namespace slimpi::intercept {

namespace {

int init(const auto& next, Word info, Word handler, void* session) {
  const int code = next(info, handler, session);
  if (code == 0) session_opened();
  return code;
}

int finalize_session(const auto& next, void* session) {
  const int code = next(session);
  if (code == 0) (void)catch_all(session_closed);
  return code;
}

int finalize(const auto& next) {
  if (sums_in_flight()) (void)catch_all(call::wait_for_all_sums);
  const Finalizing finalizing;
  return next();
}

}  // namespace

SLIMPI_BOTH(Session_init, init, (Word info, Word handler, void* session), info, handler, session)
SLIMPI_BOTH(Session_finalize, finalize_session, (void* session), session)
SLIMPI_BOTH(Finalize, finalize, ())

SLIMPI_F08(session_init, (const int* info, const int* handler, int* session, int* error),
           init(next, Word(*info), Word(*handler), session), info, handler, session)
SLIMPI_F08(session_finalize, (int* session, int* error), finalize_session(next, session), session)
SLIMPI_F08(finalize, (int* error), finalize(next))

}  // namespace slimpi::intercept
