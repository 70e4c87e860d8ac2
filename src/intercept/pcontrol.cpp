// SPDX-License-Identifier: BSD-3-Clause
#include <cstdarg>

#include "call/control.h"
#include "intercept/names.h"

namespace slimpi::intercept {

// slimpi's part of MPI_Pcontrol. MPI_Pcontrol in forward.S calls this function and jumps to the
// address that it returns, which is the next MPI_Pcontrol.
extern "C" [[gnu::used, gnu::visibility("hidden")]] void* slimpi_pcontrol_enter(int level) {
  (void)catch_all([&] { call::control(level); });
  return reinterpret_cast<void*>(SLIMPI_NEXT("MPI_Pcontrol", int(int, ...)));
}

// Passes 16 machine words of arguments to the next MPI_Pcontrol, on machines that forward.S has no
// code for. RISC-V, POWER and 32-bit ARM pass variadic floating-point arguments like integers, so
// these words include them. On other machines floating-point arguments are lost.
#if (!defined(__x86_64__) && !defined(__aarch64__)) || defined(SLIMPI_PCONTROL_WORDS)
SLIMPI_EXPORT int MPI_Pcontrol(const int level, ...) {
  using call::Word;
  using Function = int(int, ...);
  auto* const next = reinterpret_cast<Function*>(slimpi_pcontrol_enter(level));
  Word w[16];
  va_list rest;
  va_start(rest, level);
  for (Word& word : w)
    word = va_arg(rest, Word);  // reads further words if the program passed fewer
  va_end(rest);
  return next(level, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11],
              w[12], w[13], w[14], w[15]);
}
#endif

// MPI_Pcontrol of mpi_f08. slimpi intercepts this name, because neither MPICH's module nor Open
// MPI's calls C's MPI_Pcontrol. `error` is not in the standard's interface.
SLIMPI_EXPORT void mpi_pcontrol_f08_(const int* level, int* error) {
  (void)catch_all([&] { call::control(*level); });
  SLIMPI_NEXT("mpi_pcontrol_f08_", void(const int*, int*))(level, error);
}

// MPI_Pcontrol of mpif.h and of the mpi module, by the name that Fortran compilers for Linux use.
// slimpi acts here and not in PMPI_Pcontrol, which Open MPI calls next, because a tool may call
// PMPI_Pcontrol, too.
SLIMPI_EXPORT void mpi_pcontrol_(const int* level, int* error) {
  mpi::find_abi();
  if (mpi::abi.fortran_calls_pmpi) (void)catch_all([&] { call::control(*level); });
  SLIMPI_NEXT("mpi_pcontrol_", void(const int*, int*))(level, error);
}

}  // namespace slimpi::intercept
