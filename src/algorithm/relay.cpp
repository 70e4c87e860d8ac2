// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/relay.h"

#include <algorithm>

namespace slimpi::algorithm {

int Relay::steps() const {
  int steps = 0;
  while ((1 << steps) < members_) ++steps;
  return steps;
}

std::vector<int> Relay::travelling(int step) const {
  std::vector<int> places;
  for (int place = 1 << step; place < members_; ++place)
    if ((place >> step & 1) != 0) places.push_back(place);
  return places;
}

int Relay::to_gather(int step) const {
  return std::min(gathered(step), members_ - gathered(step));
}

}  // namespace slimpi::algorithm
