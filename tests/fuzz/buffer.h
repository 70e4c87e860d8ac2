// SPDX-License-Identifier: BSD-3-Clause
// Memory for the buffers of MPI calls, between two pages that cannot be touched. The bytes next to
// a buffer inside the pages hold a pattern, which the caller checks after the call.
#pragma once
#include <cstddef>

namespace fuzz {

// The place of a buffer in its pages: `shift` elements behind their first byte, or before their
// end.
struct Place {
  bool at_end = false;
  std::size_t shift = 0;
};

class Buffer {
 public:
  explicit Buffer(std::size_t capacity);  // bytes; ends the process without memory
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Places a buffer of `bytes` bytes, of elements of `width` bytes, and fills it with a pattern.
  // Only one buffer exists at a time. Its address depends on the arguments only.
  char* place(std::size_t bytes, std::size_t width, const Place& place);

  char* data() const { return data_; }  // of the buffer that was placed last
  bool surroundings_hold() const;       // nothing was written next to the buffer
  void set_read_only(bool read_only);

 private:
  char* pages_;  // the first page that can be touched
  std::size_t capacity_, page_;
  char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace fuzz
