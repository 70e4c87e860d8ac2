// SPDX-License-Identifier: BSD-3-Clause
// The path of SLIMPI_ALGORITHM=hook:PATH as a plan carries it: two plans have the same hook exactly
// if they have the same HookFile. So plans are copied and compared without their text.
#pragma once
#include <string>

namespace slimpi::algorithm {

class HookFile {
 public:
  // The only object for this path; it stays until the process ends. Any thread may call it.
  static const HookFile& at(const std::string& path);

  HookFile(const HookFile&) = delete;
  HookFile& operator=(const HookFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit HookFile(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

}  // namespace slimpi::algorithm
