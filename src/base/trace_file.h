// SPDX-License-Identifier: BSD-3-Clause
// The file of a trace: its name, and how it is written.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace slimpi {

// `pattern` with %r, %h and %p replaced, and a zero behind it; %% is a percent sign. Cut where
// `name` ends. Returns its length. Allocates nothing.
std::size_t trace_file_name(const std::string& pattern, int rank, const char* host, int process,
                            std::span<char> name);

// Does the pattern name a file for every rank?
bool trace_is_per_rank(const std::string& pattern);

// A complete trace in a file, written piece by piece without allocation. After a failure it drops
// further pieces, and a regular file is removed at the end.
class TraceFile {
 public:
  explicit TraceFile(const char* path);
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  ~TraceFile() { close(); }

  void append(std::string_view text);  // what Trace::format made
  int close();                         // 0, or the errno of the first failure

 private:
  const char* path_;
  int file_, error_ = 0;
};

}  // namespace slimpi
