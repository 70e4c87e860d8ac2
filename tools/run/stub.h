// SPDX-License-Identifier: BSD-3-Clause
// A shared library without code of its own.
#pragma once
#include <string>
#include <vector>

namespace slimpi::tools {

// The bytes of a shared library that has no name, defines nothing and needs these others, in this
// order. For the machine of `model`, the path of a shared library; "" if that cannot be read.
std::string shared_library(const std::string& model, const std::vector<std::string>& needed);

}  // namespace slimpi::tools
