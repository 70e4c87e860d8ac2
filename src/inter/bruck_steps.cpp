// SPDX-License-Identifier: BSD-3-Clause
#include "inter/bruck_steps.h"

#include <algorithm>

namespace slimpi::inter {

int BruckSteps::steps() const {
  int steps = 0;
  while ((1 << steps) < group_size_) ++steps;
  return steps;
}

// Of every 2 * bit numbers from 0 on, the last `bit` have it set.
int BruckSteps::travelling(int step) const {
  const int bit = 1 << step;
  return group_size_ / (2 * bit) * bit + std::max(0, group_size_ % (2 * bit) - bit);
}

int BruckSteps::to_gather(int step) const {
  return std::min(gathered(step), group_size_ - gathered(step));
}

}  // namespace slimpi::inter
