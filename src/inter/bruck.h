// SPDX-License-Identifier: BSD-3-Clause
// The steps of the Bruck exchange, and where its blocks and messages are in scratch memory. Both
// follow from the ExchangeSize alone. The members are the ranks that exchange. Each of them owns a
// chunk of the shard, that is, it adds up this chunk. A block has the values of one member for one
// owner: a header and encoded values, the same bytes as a message of the pairwise schedule.
#pragma once
#include <cstddef>
#include <vector>

#include "inter/segment_length.h"

namespace slimpi::inter {

// The steps of the Bruck algorithm (Bruck and others, IEEE TPDS 1997). Each of M members has a
// block for each other member. Because members store and forward each other's blocks, a member
// sends in log2(M) steps instead of one message to each of the M - 1 others.
//
// A member keeps blocks in places 1 to M - 1. At first place p has its block for the member p
// positions further on. In step k, every block in a place whose number has bit k set goes to the
// same place of the member 2^k positions further on. (Before that step, the block in place p has
// moved p % 2^k positions.) At the end, place p has the block of the member p positions back for
// this member.
class BruckSteps {
 public:
  explicit BruckSteps(int group_size) : group_size_(group_size) {}

  int steps() const;

  // Return the member `by` positions further on, or back. Positions wrap around.
  int further(int member, int by) const { return (member + by) % group_size_; }
  int back(int member, int by) const {
    return (member - by % group_size_ + group_size_) % group_size_;
  }

  // The places whose number has bit `step` set send their blocks in that step. travelling() returns
  // how many places these are, and place() the number of the i-th, in ascending order.
  int travelling(int step) const;
  int place(int step, int i) const {
    const int bit = 1 << step;
    return i / bit * 2 * bit + bit + i % bit;
  }

  // Returns the final receiver of the block that `member` has in `place` before the step.
  int destination(int member, int place, int step) const {
    return further(member, place - place % (1 << step));
  }

  // In the all-gather, every member gets one block of each member. Before a step a member has
  // gathered(step) blocks, its own and those of the next members. In the step it gets the
  // to_gather(step) blocks that follow, from the member gathered(step) positions further on.
  // to_gather(step) is gathered(step), or the number of blocks that are still missing if that is
  // less.
  int gathered(int step) const { return 1 << step; }
  int to_gather(int step) const;

 private:
  int group_size_;
};

// The lengths of the blocks in a call of one ExchangeSize, and the offsets of these blocks in
// scratch memory.
class BruckLayout : public ExchangeLayout {
 public:
  // The most bytes of one message, unless a single block is longer.
  static constexpr std::size_t kMostInMessage = 256 << 10;

  explicit BruckLayout(const ExchangeSize& size);

  const comm::Range& chunk(int owner) const { return chunks_[std::size_t(owner)]; }
  // Returns the bytes of the block for a member's chunk, or 0 if the chunk is empty.
  std::size_t bytes_of(int owner) const { return lengths_[std::size_t(owner)]; }
  // Returns the bytes of the blocks of `blocks` consecutive members from `member` on, at most all.
  std::size_t bytes_from(int member, int blocks) const {
    return first_of_[std::size_t(member + blocks)] - first_of_[std::size_t(member)];
  }
  std::size_t block() const { return block_; }      // bytes of the longest block
  std::size_t message() const { return message_; }  // bytes reserved for one message

  // Offsets in scratch memory, in bytes: each member's block, then the block of this rank's own
  // sum, then an outgoing and an incoming message.
  std::size_t place(int number) const { return block_ * std::size_t(number); }
  std::size_t own() const { return block_ * lengths_.size(); }
  std::size_t outgoing() const { return own() + block_; }
  std::size_t incoming() const { return outgoing() + message_; }
  std::size_t total() const { return incoming() + message_; }

 private:
  std::vector<comm::Range> chunks_;    // by member
  std::vector<std::size_t> lengths_;   // by member
  std::vector<std::size_t> first_of_;  // bytes before a member, counted twice around the ring
  std::size_t block_, message_;
};

}  // namespace slimpi::inter
