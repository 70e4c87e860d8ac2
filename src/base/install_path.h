// SPDX-License-Identifier: BSD-3-Clause
// Finds slimpi's own files, starting from the path of the library or program that this code was
// linked into. An installation can be moved as a whole; a build tree is used in place.
#pragma once
#include <string>

namespace slimpi {

// Full path of a plugin, such as "slimpi-hwloc.so"; "" if it does not exist.
std::string find_plugin(const std::string& name);

// Full path of libslimpi.so; "" if it does not exist.
std::string find_library();

}  // namespace slimpi
