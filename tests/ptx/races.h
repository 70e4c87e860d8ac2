// SPDX-License-Identifier: BSD-3-Clause
// Finds accesses of two threads to a byte of shared memory, one of them a write, without a barrier
// in between.
#pragma once
#include <cstdint>
#include <vector>

namespace slimpi::test::ptx {

// Who accesses, and the numbers of the last barriers that it has passed: of the block, which count
// on from block to block, and of its warp.
struct Accessor {
  std::uint32_t thread, warp, block_barriers, warp_barriers;
};

class Races {
 public:
  explicit Races(std::size_t bytes = 0) : marks_(bytes) {}

  // Another thread whose access to this byte is not separated from this one; -1: none.
  int write(std::size_t at, const Accessor& by) {
    Mark& mark = marks_[at];
    int other = conflict(mark.write, by);
    if (other < 0) other = conflict(mark.read, by);
    if (other < 0 && mark.read_by_warps && mark.read.block_barriers == by.block_barriers)
      other = int(mark.read.thread);
    // Lanes of its warp that read it before count as one; the writer may be the last of them.
    if (other < 0 && mark.read_by_lanes && mark.read.block_barriers == by.block_barriers &&
        mark.read.warp == by.warp && mark.read.warp_barriers == by.warp_barriers)
      other = int(mark.read.thread);
    mark.write = by;
    return other;
  }

  int read(std::size_t at, const Accessor& by) {
    Mark& mark = marks_[at];
    const bool same_time = mark.read.block_barriers == by.block_barriers;
    mark.read_by_warps = same_time && (mark.read_by_warps || mark.read.warp != by.warp);
    mark.read_by_lanes = same_time && mark.read.warp == by.warp &&
                         mark.read.warp_barriers == by.warp_barriers &&
                         (mark.read_by_lanes || mark.read.thread != by.thread);
    mark.read = by;
    return conflict(mark.write, by);
  }

 private:
  struct Mark {
    Accessor write = {}, read = {};
    bool read_by_warps = false, read_by_lanes = false;
  };

  // Barriers of blocks count from 1, so a mark that was never set is in no conflict.
  static int conflict(const Accessor& before, const Accessor& now) {
    if (before.thread == now.thread || before.block_barriers != now.block_barriers) return -1;
    if (before.warp == now.warp && before.warp_barriers != now.warp_barriers) return -1;
    return int(before.thread);
  }

  std::vector<Mark> marks_;
};

}  // namespace slimpi::test::ptx
