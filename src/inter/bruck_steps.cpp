// SPDX-License-Identifier: BSD-3-Clause
#include "inter/bruck_steps.h"

#include <algorithm>

namespace slimpi::inter {

int BruckSteps::steps() const {
  int steps = 0;
  while ((1 << steps) < group_size_) ++steps;
  return steps;
}

std::vector<int> BruckSteps::travelling(int step) const {
  std::vector<int> places;
  for (int place = 1 << step; place < group_size_; ++place)
    if ((place >> step & 1) != 0) places.push_back(place);
  return places;
}

int BruckSteps::to_gather(int step) const {
  return std::min(gathered(step), group_size_ - gathered(step));
}

}  // namespace slimpi::inter
