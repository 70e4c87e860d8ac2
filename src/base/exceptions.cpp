// SPDX-License-Identifier: BSD-3-Clause
#include "base/exceptions.h"

#include <cxxabi.h>

#include <exception>
#include <new>

namespace slimpi {

Status status_of_exception() {
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

}  // namespace slimpi
