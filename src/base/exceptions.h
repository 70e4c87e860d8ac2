// SPDX-License-Identifier: BSD-3-Clause
// Turns C++ exceptions into Status, which slimpi's own code uses for errors. An exception of slimpi
// (almost always for lack of memory) becomes a Status where caught() is called:
//   src/intercept        so that the exception does not cross an MPI entry point
//   callbacks of MPI     for the same reason, for example in the delete callback of an attribute
//   owners of requests   so that the exception does not unwind past MPI requests or buffers that
//                        messages or other ranks still use; Exchange::settle() ends the requests
//   hooks                so that an exception of a user's function counts as a failure of the hook
// An exception of the program itself must pass, because the program's error handler, called by MPI
// or slimpi, may throw. programs_code() marks these exceptions, and caught() throws them again,
// like the cancellation of a thread.
#pragma once
#include <cxxabi.h>

#include <exception>
#include <new>
#include <type_traits>

#include "base/status.h"

namespace slimpi {

// Whether the exception that is passing through this thread is the program's own. Set by
// programs_code(), and cleared by the catch-all in src/intercept through which the exception
// leaves.
inline thread_local bool t_programs_exception = false;

// Called in a catch (...) block: keeps the exception's text with fail() and returns its status.
// Rethrows an exception of the program, and the cancellation of the thread.
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

// Calls run() and returns its Status, or Status::ok if run() returns nothing. An exception of run()
// is returned as a Status.
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

// Calls code of the program, or of its MPI, from inside slimpi, and marks the exceptions of this
// code as the program's.
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
