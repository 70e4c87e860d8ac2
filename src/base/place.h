// SPDX-License-Identifier: BSD-3-Clause
// Where slimpi's own files lie, found from the place of the library or program that this code was
// linked into. An installation can be moved as a whole; a build tree is used as it is.
#pragma once
#include <string>

namespace slimpi {

// Full path of a part loaded on demand, such as "slimpi-hwloc.so"; "" if it is not there.
std::string find_plugin(const std::string& name);

// Full path of libslimpi.so; "" if it is not there.
std::string find_library();

}  // namespace slimpi
