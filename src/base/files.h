// SPDX-License-Identifier: BSD-3-Clause
// Files that the process reads whole, and files that it writes once.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace slimpi {

// Reads the file `path` into `text`. Returns "", or why that fails. Only a regular file of at most
// 1 MiB is read, because reading a pipe or a device might never end.
std::string read_text_file(const std::string& path, std::string& text);

// Returns whether the process may create a file of `bytes` bytes. Exceeding its limit
// (RLIMIT_FSIZE) would raise SIGXFSZ, which ends the process.
bool within_file_size_limit(std::size_t bytes);

// Opens and empties a file that the process writes once, at its end. Returns the descriptor, or -1
// with errno set. A pipe that nobody reads is an error (ENXIO), because waiting for a reader would
// keep the job from ending.
int open_result(const char* path);

// Returns the text for an errno of open_result() or write_all(), without allocating.
const char* why_no_result(int error);

// Returns a descriptor of `file` whose number is above 2, so that text for a standard stream never
// reaches a file of slimpi. open() returns 0, 1 or 2 if the program has closed a standard stream;
// `file` is then duplicated (closed on exec) to a higher number and closed. -1 stays -1.
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

// Writes the whole text. Returns false with errno set if that fails.
bool write_all(int file, std::string_view text);

}  // namespace slimpi
