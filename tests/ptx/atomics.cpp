// SPDX-License-Identifier: BSD-3-Clause
// Atomic operations on memory.
#include <algorithm>
#include <cstring>

#include "tests/ptx/lanes.h"

namespace slimpi::test::ptx {

namespace {

template <typename T, typename Operation>
void atomic(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  warp.need(i, i.from[0], lanes, "an address");
  warp.need(i, i.from[1], lanes, "a value");
  for_lanes(lanes, [&](unsigned lane) {
    const std::uint64_t address = warp.values(i.from[0])[lane] + std::uint64_t(i.offset);
    const Warp::Place place = warp.place(i, lane, address, sizeof(T), true);
    if (place.global) warp.touch(i, lane, address, sizeof(T), Access::atomic);
    T before;
    std::memcpy(&before, place.data, sizeof before);
    const T after = Operation::of(before, get<T>(warp.values(i.from[1])[lane]));
    std::memcpy(place.data, &after, sizeof after);
    warp.values(i.to[0])[lane] = put(before);
  });
  warp.set_known(i.to[0], lanes, kAllLanes);
}

struct Least {
  template <typename T>
  static T of(T a, T b) {
    return std::min(a, b);
  }
};
struct Greatest {
  template <typename T>
  static T of(T a, T b) {
    return std::max(a, b);
  }
};

}  // namespace

Handler atomic_of(const std::string& name) {
  if (name == "min.s32") return atomic<std::int32_t, Least>;
  if (name == "min.u32") return atomic<std::uint32_t, Least>;
  if (name == "max.s32") return atomic<std::int32_t, Greatest>;
  if (name == "max.u32") return atomic<std::uint32_t, Greatest>;
  return nullptr;
}

}  // namespace slimpi::test::ptx
