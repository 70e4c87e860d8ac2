// SPDX-License-Identifier: BSD-3-Clause
// Arrays of the host and of a GPU, to compare what both make of them.
#pragma once
#include <cstddef>
#include <cstring>
#include <vector>

#include "tests/helper/gpu.h"

namespace slimpi::test {

// An array on the host and on the GPU, `offset` bytes behind an aligned address. Nothing may be
// written behind its end: the fake driver checks this when the array is freed.
template <typename T>
class Both {
 public:
  explicit Both(std::size_t count, std::size_t offset = 0)
      : count_(count), base_((char*)gpu_take(GPU_DEVICE, count * sizeof(T) + offset)) {
    device = (T*)(base_ + offset);
    here.resize(count);
  }
  ~Both() { gpu_give_back(GPU_DEVICE, base_); }
  Both(const Both&) = delete;
  Both& operator=(const Both&) = delete;

  T* host() { return here.data(); }
  void send() { gpu_copy(device, GPU_DEVICE, here.data(), GPU_HOST, count_ * sizeof(T)); }
  // Whether the bytes on both sides are the same.
  bool same() {
    std::vector<T> back(count_);
    if (count_ == 0) return true;
    gpu_copy(back.data(), GPU_HOST, device, GPU_DEVICE, count_ * sizeof(T));
    return memcmp(back.data(), here.data(), count_ * sizeof(T)) == 0;
  }

  T* device;
  std::vector<T> here;

 private:
  std::size_t count_;
  char* base_;
};

}  // namespace slimpi::test
