// SPDX-License-Identifier: BSD-3-Clause
// The handling of C++ exceptions. slimpi's own code reports errors by Status; what it throws (no
// memory, almost always) becomes a Status at the places that call caught():
//   src/intercept        the catch-all: nothing of slimpi's crosses an MPI entry point
//   callbacks of MPI     the delete callbacks of attributes, and the end of the process
//   where requests live  an exception must not unwind past requests or buffers that messages or
//                        other ranks still use; settle() ends those
//   hooks                what a user's function throws is a failure of the hook
// An exception of the program's own (its error handler, called by MPI or by slimpi, may throw) is
// not slimpi's to swallow: programs_code() lets it pass through every caught(). So does the
// cancellation of a thread.
#pragma once
#include <cxxabi.h>

#include <exception>
#include <new>
#include <type_traits>

#include "base/status.h"

namespace slimpi {

// The exception that travels through this thread is the program's own. Set by programs_code(), and
// cleared by the catch-all that the exception leaves through.
inline thread_local bool t_programs_exception = false;

// For a catch (...) block: keeps the exception's text with fail() and returns its status. Throws it
// again where it is the program's, or the cancellation of the thread.
inline Status status_of_exception() {
  if (t_programs_exception) throw;
  try {
    throw;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (const std::bad_alloc&) {
    return fail(Status::no_memory, "no host memory");
  } catch (const std::exception& error) {
    return fail(Status::internal, error.what());
  } catch (...) {
    return fail(Status::internal, "an exception that is not a std::exception");
  }
}

// Calls run(), which returns a Status, or nothing: then what it throws is its only failure.
template <typename Run>
Status caught(const Run& run) {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<const Run&>>) {
      run();
      return Status::ok;
    } else {
      return run();
    }
  } catch (...) {
    return status_of_exception();
  }
}

// Calls code of the program, or of its MPI, from inside slimpi.
template <typename Run>
auto programs_code(const Run& run) {
  try {
    return run();
  } catch (...) {
    t_programs_exception = true;
    throw;
  }
}

}  // namespace slimpi
