// SPDX-License-Identifier: BSD-3-Clause
// The tools for defining MPI names in this layer: the next definition of each name, the catch-all
// around slimpi's own work, and the cases of Fortran.
#pragma once
#include <atomic>
#include <utility>

#include "base/exceptions.h"
#include "call/entry.h"
#include "mpi/abi.h"

#define SLIMPI_EXPORT extern "C" __attribute__((visibility("default")))

namespace slimpi::intercept {

// This layer uses the names of both namespaces.
using namespace call;
using namespace mpi;
using call::Request;

// Calls run() and returns ok, or the status of an exception, so that no exception of slimpi crosses
// an MPI entry point. All code that may call code of the program runs inside this catch-all. An
// exception where a sum begins ends the job with one line (end_for()), because other ranks may wait
// for this one. Elsewhere only slimpi's own work is lost: a count, a switch, a report. Exceptions
// of the program's error handlers pass through, as they do without slimpi, and so does the
// cancellation of a thread.
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

// Returns the next definition of the function `name` after this library, another tool's or MPI's,
// and caches it in `known`. Without an MPI that has the function, returns one that reports an
// error; this is not cached, because MPI may be loaded later.
void* next_definition(const char* name, std::atomic<void*>& known);

// Returns whether another library defines the function `name` after this one. Once the process has
// an MPI, caches the result in `known`: 1 or -1.
bool has_next(const char* name, std::atomic<int>& known);

// Fortran. Open MPI's bindings (mpif.h, mpi, mpi_f08) turn handles and MPI_IN_PLACE into C's and
// then call PMPI_ names, so slimpi defines those, too. These definitions act only on a call of the
// bindings. A call from elsewhere, such as a tool's, MPI's own or ROMIO's, goes to MPI as it is.
// slimpi's own calls never come here, because they use the table of MPI functions, which has MPI's
// definitions.
//
// MPICH's mpi_f08 module calls PMPI_ names directly for functions without buffers, so slimpi
// intercepts the module's own names, mpi_..._f08_. In these functions handles are C's, a true
// LOGICAL is any integer but 0, and `error` may be absent. Open MPI has functions of these names,
// too, but there slimpi sees the PMPI_ names that they call.

// Returns whether the code at an address belongs to MPI's Fortran bindings.
bool is_fortran_code(const void* address);

inline bool from_fortran(const void* caller) {
  mpi::find_abi();
  return mpi::abi.fortran_calls_pmpi && is_fortran_code(caller);
}

// Returns whether MPI is MPICH or a descendant, in whose mpi_f08 handles are C's ints.
inline bool has_f08_of_mpich() {
  mpi::find_abi();
  return mpi::handle_bytes() == sizeof(int);
}

}  // namespace slimpi::intercept

// Returns the next definition of the function `name`, as a pointer to a function of the given type.
#define SLIMPI_NEXT(name, ...)                                  \
  ([] {                                                         \
    using Function = __VA_ARGS__;                               \
    static std::atomic<void*> known{nullptr};                   \
    void* next = known.load(std::memory_order_acquire);         \
    if (next == nullptr) [[unlikely]]                           \
      next = ::slimpi::intercept::next_definition(name, known); \
    return reinterpret_cast<Function*>(next);                   \
  }())

// Whether MPI's Fortran bindings called the function in which this macro is used.
#define SLIMPI_FROM_FORTRAN ::slimpi::intercept::from_fortran(__builtin_return_address(0))

// Defines MPI_NAME, and PMPI_NAME for Open MPI's Fortran. Both call ours(next, arguments...), where
// `next` is the next definition.
#define SLIMPI_BOTH(name, ours, parameters, ...)                                            \
  SLIMPI_EXPORT int MPI_##name parameters {                                                 \
    return ours(SLIMPI_NEXT("MPI_" #name, int parameters) __VA_OPT__(, ) __VA_ARGS__);      \
  }                                                                                         \
  SLIMPI_EXPORT int PMPI_##name parameters {                                                \
    auto* const next = SLIMPI_NEXT("PMPI_" #name, int parameters);                          \
    return SLIMPI_FROM_FORTRAN ? ours(next __VA_OPT__(, ) __VA_ARGS__) : next(__VA_ARGS__); \
  }

// Defines mpi_NAME_f08_. The expression `ours` runs the call and yields its error code. In that
// expression, next() ignores its arguments, calls the next definition with the arguments of the
// program, and returns the error code. To pass other arguments, the expression can call
// `definition` itself, with `code` for the error.
#define SLIMPI_F08(name, parameters, ours, ...)                                  \
  SLIMPI_EXPORT void mpi_##name##_f08_ parameters {                              \
    const bool of_mpich = ::slimpi::intercept::has_f08_of_mpich();               \
    auto* const definition = SLIMPI_NEXT("mpi_" #name "_f08_", void parameters); \
    if (!of_mpich) return definition(__VA_ARGS__ __VA_OPT__(, ) error);          \
    int own = 0;                                                                 \
    int* const code = error != nullptr ? error : &own;                           \
    [[maybe_unused]] const auto next = [&](auto...) {                            \
      definition(__VA_ARGS__ __VA_OPT__(, ) code);                               \
      return *code;                                                              \
    };                                                                           \
    *code = ours;                                                                \
  }
