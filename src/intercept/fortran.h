// SPDX-License-Identifier: BSD-3-Clause
// Fortran. Open MPI's bindings (mpif.h, mpi, mpi_f08) turn handles and MPI_IN_PLACE into C's and
// then call PMPI_ names, so slimpi defines those too. It acts on a call of the bindings. A call
// from elsewhere, such as a tool's, MPI's own or ROMIO's, goes to MPI as it is. slimpi's own calls
// never come here: the table of MPI functions holds MPI's.
//
// MPICH's mpi_f08 module calls PMPI_ names directly for functions without buffers, so its own names
// are intercepted. Its handles are C's, a LOGICAL is an integer that is not 0, and `error` may be
// absent. What Open MPI's functions of these names call comes to the PMPI_ names.
#pragma once

#include "call/entry.h"
#include "mpi/abi.h"

namespace slimpi::intercept {

// Whether the code at an address belongs to MPI's Fortran bindings.
bool is_fortran_code(const void* address);

inline bool from_fortran(const void* caller) {
  mpi::find_abi();
  return mpi::abi.fortran_calls_pmpi && is_fortran_code(caller);
}

// Handles of its mpi_f08 are C's ints.
inline bool has_f08_of_mpich() {
  mpi::find_abi();
  return mpi::handle_bytes() == sizeof(int);
}

}  // namespace slimpi::intercept

// Whether the function in which this stands was called by MPI's Fortran bindings.
#define SLIMPI_FROM_FORTRAN ::slimpi::intercept::from_fortran(__builtin_return_address(0))

// Defines MPI_NAME, and PMPI_NAME for Open MPI's Fortran. ours(next, arguments...) does the call;
// `next` is the next definition.
#define SLIMPI_BOTH(name, ours, parameters, ...)                                            \
  SLIMPI_EXPORT int MPI_##name parameters {                                                 \
    return ours(SLIMPI_NEXT("MPI_" #name, int parameters) __VA_OPT__(, ) __VA_ARGS__);      \
  }                                                                                         \
  SLIMPI_EXPORT int PMPI_##name parameters {                                                \
    auto* const next = SLIMPI_NEXT("PMPI_" #name, int parameters);                          \
    return SLIMPI_FROM_FORTRAN ? ours(next __VA_OPT__(, ) __VA_ARGS__) : next(__VA_ARGS__); \
  }

// Defines mpi_NAME_f08_. The expression `ours` does the call, and is its error: next(), with
// whatever arguments, is that of the next definition with the arguments of the program.
#define SLIMPI_F08(name, parameters, ours, ...)                                  \
  SLIMPI_EXPORT void mpi_##name##_f08_ parameters {                              \
    const bool of_mpich = ::slimpi::intercept::has_f08_of_mpich();               \
    auto* const definition = SLIMPI_NEXT("mpi_" #name "_f08_", void parameters); \
    if (!of_mpich) return definition(__VA_ARGS__ __VA_OPT__(, ) error);          \
    int own = 0;                                                                 \
    int* const code = error != nullptr ? error : &own;                           \
    const auto next = [&](auto...) {                                             \
      definition(__VA_ARGS__ __VA_OPT__(, ) code);                               \
      return *code;                                                              \
    };                                                                           \
    *code = ours;                                                                \
  }
