// SPDX-License-Identifier: BSD-3-Clause
// What the interpreter finds wrong, in PTX or in what a kernel does.
#pragma once
#include <stdexcept>
#include <string>

namespace slimpi::test::ptx {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Where in a file of PTX.
inline std::string at_line(const std::string& file, unsigned line) {
  return file + ":" + std::to_string(line) + ": ";
}

}  // namespace slimpi::test::ptx
