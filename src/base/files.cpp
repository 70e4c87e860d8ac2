// SPDX-License-Identifier: BSD-3-Clause
#include "base/files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace slimpi {

namespace {

constexpr std::size_t kMost = std::size_t(1) << 20;  // bytes

// Reads a regular file of at most kMost bytes into `text`. Returns "", or why that fails. Checks
// the length that was read instead of the size from fstat(), because the file may grow meanwhile.
std::string read_open_file(int file, std::string& text) {
  struct stat status {};
  if (fstat(file, &status) != 0) return std::strerror(errno);
  if (S_ISDIR(status.st_mode)) return std::strerror(EISDIR);
  if (!S_ISREG(status.st_mode)) return "it is a pipe or a device, not a regular file";
  char part[2048];
  for (;;) {
    const ssize_t got = read(file, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::strerror(errno);
    if (got == 0) return "";
    text.append(part, std::size_t(got));
    if (text.size() > kMost) return "it is longer than 1 MiB";
  }
}

}  // namespace

std::string read_text_file(const std::string& path, std::string& text) {
  // O_NONBLOCK, because otherwise open() would wait for a writer if the file is a pipe.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  return file.open() ? read_open_file(file.get(), text) : std::strerror(errno);
}

void Descriptor::reset(int number) {
  if (number_ >= 0) close(number_);
  number_ = number;
}

int above_standard_streams(int file) {
  if (file < STDIN_FILENO || file > STDERR_FILENO) return file;
  const int duplicate = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  close(file);
  errno = error;
  return duplicate;
}

bool within_file_size_limit(std::size_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         bytes <= limit.rlim_cur;
}

int open_result(const char* path) {
  const int file = above_standard_streams(
      open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666));
  // From here on write() blocks, so that a slow reader of a pipe gets the whole text.
  if (file >= 0) fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
  return file;
}

const char* why_no_result(int error) {
  return error == ENXIO ? "no process reads it" : std::strerror(error);
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(std::size_t(written));
  }
  return true;
}

}  // namespace slimpi
