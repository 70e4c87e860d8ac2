// SPDX-License-Identifier: BSD-3-Clause
#include "base/described_tensor.h"

#include <utility>

namespace slimpi {

namespace {

// Whether this thread has a description. The flag is separate, so that a thread without a
// description constructs no DescribedTensor.
thread_local bool g_has_next = false;

DescribedTensor& next() {
  static thread_local DescribedTensor tensor;
  return tensor;
}

}  // namespace

void DescribedTensor::set_next(DescribedTensor tensor) {
  next() = std::move(tensor);
  if (!std::exchange(g_has_next, true)) g_waiting.fetch_add(1, std::memory_order_relaxed);
}

bool DescribedTensor::thread_has() {
  return g_has_next;
}

DescribedTensor DescribedTensor::take_next() {
  if (std::exchange(g_has_next, false)) g_waiting.fetch_sub(1, std::memory_order_relaxed);
  return std::exchange(next(), {});
}

}  // namespace slimpi
