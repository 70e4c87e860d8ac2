// SPDX-License-Identifier: BSD-3-Clause
// Writes the trace at the end of the job: each rank writes a file of its own, and slimpi-trace
// reads them together. Events are formatted and written in texts of a fixed size. Nothing here
// allocates: the process may have no memory left.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "base/files.h"
#include "call/runtime.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {

// Whether the pattern names a different file on every rank.
bool trace_is_per_rank(const std::string& pattern) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    ++i;
    if (pattern[i] == 'r' || pattern[i] == 'p') return true;
  }
  return false;
}

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

TraceWriter::TraceWriter(const char* path) : path_(path), file_(open_result(path)) {
  if (file_ < 0) error_ = errno;
  struct stat status {};
  regular_ = file_ >= 0 && fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
  append("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
}

void TraceWriter::append(std::string_view text) {
  if (error_ == 0 && regular_ && !within_file_size_limit(written_ + text.size())) error_ = EFBIG;
  written_ += text.size();
  if (error_ == 0 && !write_all(file_, text)) error_ = errno;
}

int TraceWriter::close() {
  if (file_ < 0) return error_;
  append("\n]}\n");
  if (::close(file_) != 0 && error_ == 0) error_ = errno;
  file_ = -1;
  if (error_ != 0 && regular_) unlink(path_);  // an incomplete trace is not valid JSON
  return error_;
}

// Static, because the stack may not be able to grow. Used only by the thread that ends MPI.
char g_text[8192], g_host[256], g_path[4096], g_failure[sizeof g_path + 256];

}  // namespace

std::size_t Runtime::trace_path(const char* host, std::span<char> name) const {
  std::size_t used = 0;
  const auto append = [&](std::string_view text) {
    used += text.copy(name.data() + used, name.size() - 1 - used);
  };
  const std::string_view all = *config.trace;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] != '%' || i + 1 == all.size()) {
      append(all.substr(i, 1));
      continue;
    }
    switch (all[++i]) {
      case 'r':
        append(std::to_string(std::max(world_rank.load(), 0)));
        break;
      case 'h':
        append(host);
        break;
      case 'p':
        append(std::to_string(getpid()));
        break;
      case '%':
        append("%");
        break;
      default:
        append(all.substr(i - 1, 2));
    }
  }
  if (!trace_is_per_rank(*config.trace)) {
    append(".");
    append(std::to_string(std::max(world_rank.load(), 0)));
  }
  name[used] = '\0';
  return used;
}

void Runtime::save_trace() {
  const Trace* const trace = Trace::running();
  if (trace == nullptr) return;
  gethostname(g_host, sizeof g_host - 1);
  trace_path(g_host, g_path);
  TraceWriter file(g_path);
  const Trace::Track track{std::max(world_rank.load(), 0), g_host};
  std::size_t at = 0;
  while (const std::size_t bytes = trace->format(track, at, g_text)) file.append({g_text, bytes});
  if (const int error = file.close(); error != 0) {
    std::snprintf(g_failure, sizeof g_failure, "SLIMPI_TRACE=%s cannot be written: %s", g_path,
                  why_no_result(error));
    log_error(g_failure);
  }
}

}  // namespace slimpi::call
