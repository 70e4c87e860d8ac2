// SPDX-License-Identifier: BSD-3-Clause
// Files that the process reads whole, and files that it writes once.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace slimpi {

// Reads the file `path`. Returns "" or why it cannot be read. Only a regular file of at most 1 MiB
// is read: a pipe or a device could keep a rank waiting for ever, or never end.
std::string read_text_file(const std::string& path, std::string& text);

// Whether a file may have so many bytes. One that grows beyond the process's limit (RLIMIT_FSIZE)
// raises SIGXFSZ, which ends the process.
bool within_file_size_limit(std::size_t bytes);

// Opens a file that is written once, at the end of a process, and empties it. Returns -1, with
// errno, where that fails: with ENXIO for a pipe that nobody reads. To wait for a reader there
// would keep the job from ending.
int open_result(const char* path);

// The text of an errno of opening or writing a file of results. Allocates nothing.
const char* why_no_result(int error);

// `file`, or where that is one of the standard streams, which the program has closed, a duplicate
// above them, closed on exec. What the program, or the log, writes to a standard stream must
// not reach a file of slimpi. -1 stays -1.
int above_standard_streams(int file);

// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void reset(int number = -1);
  int get() const { return number_; }
  bool open() const { return number_ >= 0; }

 private:
  int number_;
};

// Writes all of the text. False, with errno, where that fails.
bool write_all(int file, std::string_view text);

}  // namespace slimpi
