// SPDX-License-Identifier: BSD-3-Clause
// Memory for kernel tests that ends, or begins, at a page that may not be touched: a read or write
// beyond that end dies, and one beyond the other end changes a pattern that is checked.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/helper/base/cmocka_cxx.h"

namespace slimpi::test {

class Arena {
 public:
  static constexpr std::size_t kBytes = std::size_t(1) << 16;

  Arena() {
    const std::size_t page = (std::size_t)sysconf(_SC_PAGESIZE);
    auto* all = (unsigned char*)mmap(nullptr, kBytes + 2 * page, PROT_NONE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + page, kBytes, PROT_READ | PROT_WRITE) != 0) abort();
    begin_ = all + page;
  }

  // Takes `bytes` bytes, aligned to 4, as near as that allows to the page behind (at_end) or right
  // after the page in front. Fills everything around them with a pattern.
  template <typename T>
  T* take(std::size_t count, bool at_end) {
    size_ = count * sizeof(T);
    if (size_ + 64 > kBytes) abort();
    start_ = at_end ? (kBytes - size_) / 4 * 4 : 0;
    memset(begin_, kPattern, kBytes);
    return (T*)(begin_ + start_);
  }

  // Whether the pattern around the last memory that was taken is whole. `used` bytes of the memory
  // may have changed.
  bool intact(std::size_t used) const {
    for (std::size_t i = 0; i < start_; ++i)
      if (begin_[i] != kPattern) return false;
    for (std::size_t i = start_ + used; i < kBytes; ++i)
      if (begin_[i] != kPattern) return false;
    return true;
  }
  bool intact() const { return intact(size_); }

 private:
  static constexpr unsigned char kPattern = 0xa5;
  unsigned char* begin_ = nullptr;
  std::size_t start_ = 0, size_ = 0;
};

}  // namespace slimpi::test
