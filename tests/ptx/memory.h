// SPDX-License-Identifier: BSD-3-Clause
// What kernels can touch: GPU memory that the driver has given out, and a block's shared memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace slimpi::test::ptx {

// Allocations, by their first byte. Their addresses are those of the process.
class Allocations {
 public:
  void add(const void* begin, std::size_t bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(begin);
    ends_[first] = first + bytes;
  }
  // Whether all of these bytes lie in one allocation.
  bool contains(std::uint64_t address, unsigned bytes) {
    if (address >= first_ && address < end_ && end_ - address >= bytes) return true;
    const auto behind = ends_.upper_bound(address);
    if (behind == ends_.begin()) return false;
    first_ = std::prev(behind)->first;
    end_ = std::prev(behind)->second;
    return address < end_ && end_ - address >= bytes;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;
  std::uint64_t first_ = 0, end_ = 0;  // the one that was found last
};

// Bytes, each of which may never have been written.
struct Bytes {
  std::vector<unsigned char> data, known;

  explicit Bytes(std::size_t bytes = 0) : data(bytes), known(bytes) {}
};

// Generic addresses of memory that is not the GPU's; no pointer of a process is like these.
constexpr std::uint64_t kSharedWindow = 0x5f01000000000000, kParamWindow = 0x5f02000000000000,
                        kFrameWindow = 0x5f03000000000000, kWindowBytes = 0x1000000;

inline bool in_window(std::uint64_t window, std::uint64_t address) {
  return address >= window && address - window < kWindowBytes;
}

// Shared addresses begin here: 0 is no variable's.
constexpr unsigned kFirstShared = 256;

}  // namespace slimpi::test::ptx
