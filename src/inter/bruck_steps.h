// SPDX-License-Identifier: BSD-3-Clause
// The way of blocks that every one of M members has for every other, when they travel by way of
// other members: log2(M) steps instead of M - 1 messages. (Bruck and others, IEEE TPDS 1997.)
//
// A member keeps blocks in places 1 to M - 1. At first place p holds what it has for the member p
// further on. In step k everything in places whose number has bit k set goes 2^k members further,
// to the same places there; after the last step place p holds what the member p back had for this
// one. A block has gone as far as the bits of its place below the present step say.
#pragma once
#include <vector>

namespace slimpi::inter {

class BruckSteps {
 public:
  explicit BruckSteps(int group_size) : group_size_(group_size) {}

  int steps() const;

  int further(int member, int by) const { return (member + by) % group_size_; }
  int back(int member, int by) const {
    return (member - by % group_size_ + group_size_) % group_size_;
  }

  // The places whose blocks travel in a step, ascending.
  std::vector<int> travelling(int step) const;

  // For whom the block is that `member` has in `place` before the step.
  int destination(int member, int place, int step) const {
    return further(member, place - place % (1 << step));
  }

  // The other way round, for one block of each member that all are to get: a member holds those of
  // the members from itself on, one at first; in each step it gets as many again from the member
  // that far on, in the last as many as are missing.
  int gathered(int step) const { return 1 << step; }
  int to_gather(int step) const;

 private:
  int group_size_;
};

}  // namespace slimpi::inter
