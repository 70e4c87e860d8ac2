// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fuzz {

namespace {
constexpr std::size_t kWatched = 4096;  // bytes on either side of the buffer
constexpr unsigned char kPattern = 0xA5;

bool holds_pattern(const char* begin, const char* end) {
  return std::all_of(begin, end, [](char c) { return c == char(kPattern); });
}
}  // namespace

Buffer::Buffer(std::size_t capacity) : page_(std::size_t(sysconf(_SC_PAGESIZE))) {
  capacity_ = (capacity + page_ - 1) / page_ * page_;
  void* const all =
      mmap(nullptr, capacity_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pages_ = static_cast<char*>(all) + page_;
  if (all == MAP_FAILED || mprotect(pages_, capacity_, PROT_READ | PROT_WRITE) != 0) {
    std::perror("fuzz: no memory for buffers");
    std::exit(2);
  }
}

Buffer::~Buffer() {
  munmap(pages_ - page_, capacity_ + 2 * page_);
}

char* Buffer::place(std::size_t bytes, std::size_t width, const Place& place) {
  const std::size_t shift = std::min(place.shift * width, capacity_ - bytes);
  data_ = place.at_end ? pages_ + capacity_ - bytes - shift : pages_ + shift;
  bytes_ = bytes;
  char* const begin = std::max(pages_, data_ - kWatched);
  char* const end = std::min(pages_ + capacity_, data_ + bytes + kWatched);
  std::memset(begin, kPattern, std::size_t(end - begin));
  return data_;
}

bool Buffer::surroundings_hold() const {
  return holds_pattern(std::max(pages_, data_ - kWatched), data_) &&
         holds_pattern(data_ + bytes_, std::min(pages_ + capacity_, data_ + bytes_ + kWatched));
}

void Buffer::set_read_only(bool read_only) {
  if (mprotect(pages_, capacity_, PROT_READ | (read_only ? 0 : PROT_WRITE)) == 0) return;
  std::perror("fuzz: mprotect");
  std::exit(2);
}

}  // namespace fuzz
