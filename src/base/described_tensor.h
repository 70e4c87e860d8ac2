// SPDX-License-Identifier: BSD-3-Clause
// The description of the tensor that a thread of the program sums next, by slimpi_describe_next.
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
  std::string name;  // identifies the data kept for the tensor (comm/tensor_state.h); "": no name
  // The consecutive matrices of the buffer, from its first float on, for algorithms with the trait
  // `shapes` (PowerSGD). Floats behind the last matrix belong to none.
  std::vector<MatrixSize> matrices;

  // Sets the description of the next float sum of the calling thread. Replaces a description that
  // no sum has taken.
  static void set_next(DescribedTensor tensor);

  // has_next() returns whether this thread has a description. take_next() returns it and removes
  // it, so that no later sum gets it.
  static bool has_next() { return g_waiting.load(std::memory_order_relaxed) != 0 && thread_has(); }
  static DescribedTensor take_next();

 private:
  static bool thread_has();
  // The number of threads with a description. Relaxed order is enough, because a thread always sees
  // its own increment and does not depend on those of others.
  static inline std::atomic<int> g_waiting{0};
};

}  // namespace slimpi
