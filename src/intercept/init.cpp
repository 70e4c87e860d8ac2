// SPDX-License-Identifier: BSD-3-Clause
// MPI_Init and MPI_Init_thread, intercepted to ask for MPI_THREAD_MULTIPLE where sums need it, and
// to prepare such sums. The program learns the level that it got, as from any MPI that gives more
// than was asked for.
#include "call/entry.h"
#include "intercept/catch_all.h"
#include "intercept/fortran.h"

namespace slimpi::intercept {

namespace {

// Of several MPIs in the process this chooses that of the caller, before a function is looked up.
ThreadLevel wanted_level() {
  auto level = ThreadLevel::programs;
  (void)catch_all([&] {
    mpi::find_abi();
    level = call::wanted_thread_level();
  });
  return level;
}

int level_of_thread(int required) {
  return wanted_level() == ThreadLevel::multiple ? mpi::abi.thread_multiple : required;
}

int initialized(int code) {
  if (code == mpi::kSuccess) (void)catch_all(call::after_init);
  return code;
}

// init() calls the next definition without a level, init_thread(level) with one.
int init(const auto& without_level, const auto& with_level) {
  const ThreadLevel wanted = wanted_level();
  if (wanted == ThreadLevel::programs) return initialized(without_level());
  if (wanted == ThreadLevel::multiple_for_init) (void)catch_all(call::tell_thread_level);
  return initialized(with_level(mpi::abi.thread_multiple));
}

using InitThread = int(int*, void*, int, int*);

}  // namespace

SLIMPI_EXPORT int MPI_Init(int* argc, void* argv) {
  return init([&] { return SLIMPI_NEXT("MPI_Init", int(int*, void*))(argc, argv); },
              [&](int level) {
                int provided = 0;
                return SLIMPI_NEXT("MPI_Init_thread", InitThread)(argc, argv, level, &provided);
              });
}

SLIMPI_EXPORT int MPI_Init_thread(int* argc, void* argv, int required, int* provided) {
  const int level = level_of_thread(required);
  return initialized(SLIMPI_NEXT("MPI_Init_thread", InitThread)(argc, argv, level, provided));
}

// For Open MPI's Fortran: see fortran.h.
SLIMPI_EXPORT int PMPI_Init_thread(int* argc, void* argv, int required, int* provided) {
  auto* const next = SLIMPI_NEXT("PMPI_Init_thread", InitThread);
  if (!SLIMPI_FROM_FORTRAN) return next(argc, argv, required, provided);
  return initialized(next(argc, argv, level_of_thread(required), provided));
}

SLIMPI_EXPORT int PMPI_Init(int* argc, void* argv) {
  auto* const next = SLIMPI_NEXT("PMPI_Init", int(int*, void*));
  if (!SLIMPI_FROM_FORTRAN) return next(argc, argv);
  return init([&] { return next(argc, argv); },
              [&](int level) {
                int provided = 0;
                return SLIMPI_NEXT("PMPI_Init_thread", InitThread)(argc, argv, level, &provided);
              });
}

// MPICH's mpi_f08 module calls PMPI_ names directly; `error` may be absent.
SLIMPI_EXPORT void mpi_init_f08_(int* error) {
  int provided = 0, own = 0;
  int* const code = error != nullptr ? error : &own;
  (void)init(
      [&] {
        SLIMPI_NEXT("mpi_init_f08_", void(int*))(code);
        return *code;
      },
      [&](int level) {
        SLIMPI_NEXT("mpi_init_thread_f08_", void(const int*, int*, int*))(&level, &provided, code);
        return *code;
      });
}

SLIMPI_EXPORT void mpi_init_thread_f08_(const int* required, int* provided, int* error) {
  const int level = level_of_thread(*required);
  SLIMPI_NEXT("mpi_init_thread_f08_", void(const int*, int*, int*))(&level, provided, error);
}

}  // namespace slimpi::intercept
