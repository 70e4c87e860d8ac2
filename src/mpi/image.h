// SPDX-License-Identifier: BSD-3-Clause
// Where an address lies: the part of a loaded library or program that holds it.
#pragma once
#include <string_view>

#include "mpi/types.h"

namespace slimpi::mpi {

struct Image {
  Word first = 0, end = 0;  // of the part, such as its data; both 0 outside of all files
  std::string_view name;    // of the file, without its directory; "" for the program
};

Image image_of(const void* address);

}  // namespace slimpi::mpi
