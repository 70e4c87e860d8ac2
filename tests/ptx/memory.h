// SPDX-License-Identifier: BSD-3-Clause
// What kernels can touch: GPU memory that the driver has given out, and a block's shared memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

namespace slimpi::test::ptx {

enum class Access : std::uint8_t { read, write, atomic };

// Allocations, by their first byte. Their addresses are those of the process. For one launch.
class Allocations {
 public:
  void add(const void* begin, std::size_t bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(begin);
    all_[first] = {first, first + bytes, {}};
  }

  // Whether all of these bytes lie in one allocation.
  bool contains(std::uint64_t address, unsigned bytes) {
    if (last_ == nullptr || address < last_->begin || address >= last_->end) {
      const auto behind = all_.upper_bound(address);
      if (behind == all_.begin()) return false;
      last_ = &std::prev(behind)->second;
    }
    return address < last_->end && last_->end - address >= bytes;
  }

  // Notes an access of a block to bytes that contains() has found. Returns another block with an
  // access to one of them, one of the two a write; -1: none. Blocks never wait for each other.
  int race(std::uint64_t address, unsigned bytes, unsigned block, Access access) {
    std::vector<Users>& marks = last_->users;
    marks.resize(last_->end - last_->begin);
    int other = -1;
    for (std::uint64_t at = address - last_->begin; bytes != 0; ++at, --bytes) {
      for (const Access before : {Access::read, Access::write, Access::atomic}) {
        const unsigned user = marks[at].block[int(before)];
        if (user != 0 && user != block + 1 && (before != access || access == Access::write))
          other = int(user) - 1;
      }
      // Of several readers, any stays known.
      marks[at].block[int(access)] = block + 1;
    }
    return other;
  }

 private:
  struct Users {
    unsigned block[3] = {};  // the last of each kind of access, from 1
  };
  struct Allocation {
    std::uint64_t begin = 0, end = 0;
    std::vector<Users> users;  // of each byte, from the first access on
  };
  std::map<std::uint64_t, Allocation> all_;
  Allocation* last_ = nullptr;  // found last
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
