// SPDX-License-Identifier: BSD-3-Clause
// How this layer defines the names of MPI: the next definition of each, the catch-all around
// slimpi's part, and Fortran.
#pragma once
#include <atomic>
#include <utility>

#include "base/exceptions.h"
#include "call/entry.h"
#include "mpi/abi.h"

#define SLIMPI_EXPORT extern "C" __attribute__((visibility("default")))

namespace slimpi::intercept {

// The words of this layer are those of both.
using namespace call;
using namespace mpi;
using call::Request;

// The catch-all. No exception of slimpi's crosses an MPI entry point: what slimpi throws where a
// sum begins ends the job with one line (end_for); elsewhere it costs what slimpi would have done:
// a count, a switch, a report. Exceptions of the program's own error handlers pass through, as they
// do without slimpi; so does the cancellation of a thread. Returns the status of what was thrown.
// Everything that may call the program's code runs inside one.
template <typename Run>
inline Status catch_all(const Run& run) {
  try {
    run();
    return Status::ok;
  } catch (...) {
    if (std::exchange(t_programs_exception, false)) throw;
    return status_of_exception();
  }
}

// The next definition of the function `name` after this library: another tool's, or MPI's. It is
// cached in `known`. Without an MPI that has the function, returns a function that reports an
// error. That one is not cached: MPI may be loaded later.
void* next_definition(const char* name, std::atomic<void*>& known);

// Whether there is a next definition. 1 or -1 is cached in `known` once the process has an MPI.
bool has_next(const char* name, std::atomic<int>& known);

// Fortran. Open MPI's bindings (mpif.h, mpi, mpi_f08) turn handles and MPI_IN_PLACE into C's and
// then call PMPI_ names, so slimpi defines those too. It acts on a call of the bindings. A call
// from elsewhere, such as a tool's, MPI's own or ROMIO's, goes to MPI as it is. slimpi's own calls
// never come here: the table of MPI functions holds MPI's.
//
// MPICH's mpi_f08 module calls PMPI_ names directly for functions without buffers, so its own names
// are intercepted. Its handles are C's, a LOGICAL is an integer that is not 0, and `error` may be
// absent. What Open MPI's functions of these names call comes to the PMPI_ names.

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

// The next definition of the function `name`, as a pointer to a function of the given type.
#define SLIMPI_NEXT(name, ...)                                  \
  ([] {                                                         \
    using Function = __VA_ARGS__;                               \
    static std::atomic<void*> known{nullptr};                   \
    void* next = known.load(std::memory_order_acquire);         \
    if (next == nullptr) [[unlikely]]                           \
      next = ::slimpi::intercept::next_definition(name, known); \
    return reinterpret_cast<Function*>(next);                   \
  }())

#define SLIMPI_HAS_NEXT(name)                                               \
  ([] {                                                                     \
    static std::atomic<int> known{0};                                       \
    const int has = known.load(std::memory_order_relaxed);                  \
    return has != 0 ? has > 0 : ::slimpi::intercept::has_next(name, known); \
  }())

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
