// SPDX-License-Identifier: BSD-3-Clause
#include "base/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/shared_file.h"

namespace slimpi {

namespace {

constexpr std::size_t kMost = std::size_t(1) << 20;  // bytes

// A file may grow while it is read, so what was read decides about its length.
std::string read_open_file(int file, std::string& text) {
  struct stat status {};
  if (fstat(file, &status) != 0) return std::strerror(errno);
  if (S_ISDIR(status.st_mode)) return std::strerror(EISDIR);
  if (!S_ISREG(status.st_mode)) return "it is a pipe or a device, not a regular file";
  char part[4096];
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
  // Without O_NONBLOCK the open of a pipe that nobody writes would wait.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  return file.open() ? read_open_file(file.get(), text) : std::strerror(errno);
}

}  // namespace slimpi
