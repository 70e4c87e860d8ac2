// SPDX-License-Identifier: BSD-3-Clause
// MPI_Init and MPI_Init_thread, intercepted only to ask for MPI_THREAD_MULTIPLE where
// SLIMPI_PROGRESS=thread needs it. The program learns the level that it got, as from any MPI that
// gives more than was asked for.
#include "call/entry.h"
#include "intercept/catch_all.h"
#include "intercept/fortran.h"

namespace slimpi::intercept {

namespace {

// Of several MPIs in the process this chooses that of the caller, before a function is looked up.
bool wants_threads() {
  bool wants = false;
  (void)catch_all([&] {
    mpi::find_abi();
    wants = call::wants_threads();
  });
  return wants;
}

int init_thread(int* argc, void* argv, int required, int* provided) {
  return SLIMPI_NEXT("MPI_Init_thread", int(int*, void*, int, int*))(argc, argv, required,
                                                                     provided);
}

void init_thread_f08(const int* required, int* provided, int* error) {
  SLIMPI_NEXT("mpi_init_thread_f08_", void(const int*, int*, int*))(required, provided, error);
}

}  // namespace

SLIMPI_EXPORT int MPI_Init(int* argc, void* argv) {
  int provided = 0;
  if (wants_threads()) return init_thread(argc, argv, mpi::abi.thread_multiple, &provided);
  return SLIMPI_NEXT("MPI_Init", int(int*, void*))(argc, argv);
}

SLIMPI_EXPORT int MPI_Init_thread(int* argc, void* argv, int required, int* provided) {
  const bool wants = wants_threads();
  return init_thread(argc, argv, wants ? mpi::abi.thread_multiple : required, provided);
}

// For Open MPI's Fortran: see fortran.h.
SLIMPI_EXPORT int PMPI_Init_thread(int* argc, void* argv, int required, int* provided) {
  if (SLIMPI_FROM_FORTRAN && wants_threads()) required = mpi::abi.thread_multiple;
  return SLIMPI_NEXT("PMPI_Init_thread", int(int*, void*, int, int*))(argc, argv, required,
                                                                      provided);
}

SLIMPI_EXPORT int PMPI_Init(int* argc, void* argv) {
  int provided = 0;
  if (SLIMPI_FROM_FORTRAN && wants_threads())
    return SLIMPI_NEXT("PMPI_Init_thread", int(int*, void*, int, int*))(
        argc, argv, mpi::abi.thread_multiple, &provided);
  return SLIMPI_NEXT("PMPI_Init", int(int*, void*))(argc, argv);
}

// MPICH's mpi_f08 module calls PMPI_ names directly; `error` may be absent.
SLIMPI_EXPORT void mpi_init_f08_(int* error) {
  int provided = 0;
  if (wants_threads())
    init_thread_f08(&mpi::abi.thread_multiple, &provided, error);
  else
    SLIMPI_NEXT("mpi_init_f08_", void(int*))(error);
}

SLIMPI_EXPORT void mpi_init_thread_f08_(const int* required, int* provided, int* error) {
  init_thread_f08(wants_threads() ? &mpi::abi.thread_multiple : required, provided, error);
}

}  // namespace slimpi::intercept
