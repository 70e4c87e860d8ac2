// SPDX-License-Identifier: BSD-3-Clause
// Measurements as a JSON list, one object on a line. The file is complete after every row, so that
// a run which is cut off has measured something.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>

namespace slimpi::test {

class JsonRows {
 public:
  // Without a file, rows are dropped.
  void write_to(const char* file) { file_ = file; }

  // `row`: an object. Ends the program where the file cannot be written.
  void add(const std::string& row) {
    if (file_ == nullptr) return;
    rows_ += (rows_.empty() ? "[\n  " : ",\n  ") + row;
    // Renamed, because a run that is cut off while it writes would leave an empty file.
    const std::string written = file_ + std::string(".new");
    std::FILE* const out = std::fopen(written.c_str(), "w");
    if (out != nullptr && std::fprintf(out, "%s\n]\n", rows_.c_str()) >= 0 &&
        std::fclose(out) == 0 && std::rename(written.c_str(), file_) == 0)
      return;
    std::perror(file_);
    std::exit(1);
  }

 private:
  const char* file_ = nullptr;
  std::string rows_;
};

}  // namespace slimpi::test
