// SPDX-License-Identifier: BSD-3-Clause
#include "base/trace_writer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/files.h"

namespace slimpi {

std::size_t trace_file_name(const std::string& pattern, int rank, const char* host, int process,
                            std::span<char> name) {
  std::size_t used = 0;
  const auto append = [&](std::string_view text) {
    used += text.copy(name.data() + used, name.size() - 1 - used);
  };
  const std::string_view all = pattern;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] != '%' || i + 1 == all.size()) {
      append(all.substr(i, 1));
      continue;
    }
    switch (all[++i]) {
      case 'r':
        append(std::to_string(rank));
        break;
      case 'h':
        append(host);
        break;
      case 'p':
        append(std::to_string(process));
        break;
      case '%':
        append("%");
        break;
      default:
        append(all.substr(i - 1, 2));
    }
  }
  name[used] = '\0';
  return used;
}

bool trace_is_per_rank(const std::string& pattern) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    ++i;
    if (pattern[i] == 'r' || pattern[i] == 'p') return true;
  }
  return false;
}

TraceWriter::TraceWriter(const char* path) : path_(path), file_(open_result(path)) {
  if (file_ < 0) error_ = errno;
  struct stat status {};
  regular_ = file_ >= 0 && fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
  // The first event belongs to no rank, so that a comma can precede every other event.
  append(
      "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
      "{\"ph\":\"M\",\"name\":\"trace\",\"pid\":0,\"args\":{}}");
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

}  // namespace slimpi
