// SPDX-License-Identifier: BSD-3-Clause
// The handling of C++ exceptions. slimpi's own code reports errors by Status. An exception of
// slimpi (almost always: no memory) becomes a Status at the places that call caught():
//   src/intercept        so that no exception of slimpi crosses an MPI entry point
//   callbacks of MPI     the delete callbacks of attributes, and the end of the process
//   owners of requests   so that no exception unwinds past MPI requests or buffers that messages or
//                        other ranks still use; Exchange::settle() ends the requests
//   hooks                so that an exception of a user's function is a failure of the hook
// An exception of the program itself must pass: its error handler, called by MPI or slimpi, may
// throw. programs_code() marks this exception, and every caught() throws it again. caught() also
// throws the cancellation of a thread again.
#pragma once
#include <cxxabi.h>

#include <exception>
#include <new>
#include <type_traits>

#include "base/status.h"

namespace slimpi {

// Whether the exception that passes through this thread is the program's own: set by
// programs_code(), cleared by the catch-all in src/intercept that the exception leaves through.
inline thread_local bool t_programs_exception = false;

// Called in a catch (...) block: keeps the exception's text with fail() and returns its status.
// Throws the exception again if it is the program's, or the cancellation of the thread.
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

// Calls run() and returns its Status, or Status::ok if run() returns nothing. If run() throws,
// returns the Status of the exception.
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

// Calls code of the program, or of its MPI, from inside slimpi. Marks its exceptions as the
// program's.
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
