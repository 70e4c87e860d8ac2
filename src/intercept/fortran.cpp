// SPDX-License-Identifier: BSD-3-Clause
#include "intercept/fortran.h"

#include "mpi/search.h"

namespace slimpi::intercept {

bool is_fortran_code(const void* address) {
  // Of the last caller: most threads call from one place.
  thread_local mpi::Word first = 0, end = 0;
  thread_local bool fortran = false;
  if (reinterpret_cast<mpi::Word>(address) - first >= end - first) {
    const mpi::Image image = mpi::image_of(address);
    first = image.first;
    end = image.end;
    fortran = image.name.starts_with("libmpi_mpifh") || image.name.starts_with("libmpi_usempi");
  }
  return fortran;
}

}  // namespace slimpi::intercept
