// SPDX-License-Identifier: BSD-3-Clause
// Rows of the instruction table: what the lanes of a warp do together. The last source is the mask
// of lanes; Warp::meet has all of them here.
#include <algorithm>
#include <array>

#include "tests/ptx/lanes.h"

namespace slimpi::test::ptx {

namespace {

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

struct Sum {
  template <typename T>
  static T of(T a, T b) {
    return a + b;
  }
};

template <typename Operation, typename T>
void reduce(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  warp.need(i, i.from[0], lanes, "a value");
  const int first = std::countr_zero(lanes);
  T result = get<T>(warp.values(i.from[0])[first]);
  for_lanes(lanes & ~(1u << first),
            [&](unsigned l) { result = Operation::of(result, get<T>(warp.values(i.from[0])[l])); });
  for_lanes(lanes, [&](unsigned l) { warp.values(i.to[0])[l] = put(result); });
  warp.set_known(i.to[0], lanes, kAllLanes);
}

void vote_any(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  warp.need(i, i.from[0], lanes, "a predicate");
  bool any = false;
  for_lanes(lanes, [&](unsigned l) { any = any || warp.values(i.from[0])[l] != 0; });
  for_lanes(lanes, [&](unsigned l) { warp.values(i.to[0])[l] = put(any); });
  warp.set_known(i.to[0], lanes, kAllLanes);
}

struct Up {
  static unsigned of(unsigned lane, unsigned number) { return lane - number; }
};
struct Butterfly {
  static unsigned of(unsigned lane, unsigned number) { return lane ^ number; }
};

// A lane gets the value of another one, or its own where there is none. The third source, which
// would divide the warp, is not looked at: the CUDA functions have no division by default.
template <typename From>
void shuffle(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  warp.need(i, i.from[0], lanes, "a value");
  std::array<std::uint64_t, kLanes> values;
  for_lanes(lanes, [&](unsigned l) {
    const unsigned from = From::of(l, unsigned(warp.values(i.from[1])[l]));
    if (from < kLanes && (lanes >> from & 1) == 0)
      warp.fail(i, l, "it reads a lane that is absent");
    values[l] = warp.values(i.from[0])[from < kLanes ? from : l];
  });
  for_lanes(lanes, [&](unsigned l) { warp.values(i.to[0])[l] = values[l]; });
  warp.set_known(i.to[0], lanes, kAllLanes);
}

// Orders what its lanes do to memory; a part of a warp would need a finer search for races.
void barrier(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  if (lanes != kAllLanes)
    warp.fail(i, unsigned(std::countr_zero(lanes)), "a barrier for a part of a warp is not known");
  ++warp.barriers;
}

Row warp_row(Handler run, unsigned to, std::vector<unsigned> from) {
  return {run, to, std::move(from), Flow::meet_warp};
}

}  // namespace

void add_warp_rows(Table& table) {
  table["redux.sync.min.s32"] = warp_row(reduce<Least, std::int32_t>, 32, {32, 32});
  table["redux.sync.max.s32"] = warp_row(reduce<Greatest, std::int32_t>, 32, {32, 32});
  table["redux.sync.min.u32"] = warp_row(reduce<Least, std::uint32_t>, 32, {32, 32});
  table["redux.sync.max.u32"] = warp_row(reduce<Greatest, std::uint32_t>, 32, {32, 32});
  table["redux.sync.add.s32"] = warp_row(reduce<Sum, std::uint32_t>, 32, {32, 32});
  table["redux.sync.add.u32"] = warp_row(reduce<Sum, std::uint32_t>, 32, {32, 32});
  table["shfl.sync.up.b32"] = warp_row(shuffle<Up>, 32, {32, 32, 32, 32});
  table["shfl.sync.bfly.b32"] = warp_row(shuffle<Butterfly>, 32, {32, 32, 32, 32});
  table["vote.sync.any.pred"] = warp_row(vote_any, 1, {1, 32});
  table["bar.warp.sync"] = warp_row(barrier, 0, {32});
}

const Table& table() {
  static const Table* const all = [] {
    auto* const made = new Table;
    add_integer_rows(*made);
    add_bit_rows(*made);
    add_real_rows(*made);
    add_compare_rows(*made);
    add_convert_rows(*made);
    add_warp_rows(*made);
    return made;
  }();
  return *all;
}

}  // namespace slimpi::test::ptx
