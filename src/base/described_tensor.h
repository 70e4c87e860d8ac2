// SPDX-License-Identifier: BSD-3-Clause
// The description that slimpi_describe_next() gives of the tensor that a thread sums next.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace slimpi {

struct MatrixSize {
  std::uint64_t rows = 0, columns = 0;
};

struct DescribedTensor {
  std::string name;  // the key of its tensor state (comm/tensor_state.h); "": unnamed
  // The consecutive matrices of the buffer, from its first float on, for algorithms with the trait
  // `shapes` (PowerSGD). Floats after the last matrix belong to no matrix.
  std::vector<MatrixSize> matrices;

  // Sets the description for the next float sum of the calling thread, in place of one that no sum
  // has taken yet.
  static void set_next(DescribedTensor tensor);

  // has_next() returns whether this thread has a description; take_next() returns and removes it,
  // so that no later sum gets it.
  static bool has_next() { return g_waiting.load(std::memory_order_relaxed) != 0 && thread_has(); }
  static DescribedTensor take_next();

 private:
  static bool thread_has();
  // The number of threads with a description. Relaxed order is enough, because a thread always sees
  // its own increment, and those of other threads do not matter.
  static inline std::atomic<int> g_waiting{0};
};

}  // namespace slimpi
