// SPDX-License-Identifier: BSD-3-Clause
// Parts that the measurements of GPU memory share. The figures are written as a JSON list, one
// object on a line. The file is complete after every row, so a run that is cut off leaves figures.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/plugins.h"
#include "tests/helper/gpu.h"
#include "tests/kernels/data.h"

namespace slimpi::test {

// The row of GPU memory that is measured, and a stream of it.
inline const device::Device* g_row = nullptr;
inline device::Stream* g_stream = nullptr;

inline void check(Status status) {
  if (status == Status::ok) return;
  std::fprintf(stderr, "%s\n", failure_text().c_str());
  std::exit(1);
}

// Finds the row of `memory`, and opens the stream.
inline void open_row(const void* memory) {
  g_row = device::locate(memory).device;
  if (g_row == &device::host()) {
    std::fprintf(stderr, "slimpi-cuda.so is not built or cannot be loaded\n");
    std::exit(1);
  }
  check(g_row->open_stream(device::locate(memory), &g_stream));
}

class JsonRows {
 public:
  // Sets the file of the rows. Without a file, rows are dropped.
  void write_to(const char* file) { file_ = file; }

  // Adds a row, which is a JSON object. Ends the program if the file cannot be written.
  void add(const std::string& row) {
    if (file_ == nullptr) return;
    rows_ += (rows_.empty() ? "[\n  " : ",\n  ") + row;
    // The new file is renamed, because a run that is cut off while it writes would leave an empty
    // file.
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
inline JsonRows g_rows;

}  // namespace slimpi::test
