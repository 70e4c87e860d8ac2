// SPDX-License-Identifier: BSD-3-Clause
// The file of a trace: its name, and how it is written.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace slimpi {

// Writes `pattern` with %r, %h and %p replaced, and a terminating zero, to `name`; %% is a percent
// sign. Cut to the length of `name`. Returns its length. Allocates nothing.
std::size_t trace_file_name(const std::string& pattern, int rank, const char* host, int process,
                            std::span<char> name);

// Whether the pattern names a different file on every rank.
bool trace_is_per_rank(const std::string& pattern);

// A complete trace in a file, written in several calls without allocation. After a failure further
// text is dropped, and a regular file is removed at the end.
class TraceWriter {
 public:
  explicit TraceWriter(const char* path);
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;
  ~TraceWriter() { close(); }

  void append(std::string_view text);  // text from Trace::format
  int close();                         // 0, or the errno of the first failure

 private:
  const char* path_;
  int file_, error_ = 0;
  bool regular_ = false;
  std::size_t written_ = 0;  // bytes
};

}  // namespace slimpi
