// SPDX-License-Identifier: BSD-3-Clause
// Where the Bruck exchange keeps its blocks and messages in scratch memory, and what each block
// holds; from the size of the sum alone. A block is a message of the pairwise schedule with its
// header.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "inter/exchange_layout.h"

namespace slimpi::inter {

class BruckLayout : public ExchangeLayout {
 public:
  // The most bytes of one message, unless a single block is longer.
  static constexpr std::size_t kMostInMessage = 256 << 10;

  explicit BruckLayout(const ExchangeSize& size);
  std::size_t bytes() const override;

  const comm::Range& chunk(int owner) const { return chunks_[std::size_t(owner)]; }
  // Bytes of the block for a member's chunk; 0 if the chunk is empty.
  std::size_t bytes_of(int owner) const { return lengths_[std::size_t(owner)]; }
  // Bytes of the blocks of `blocks` consecutive members from `member` on, at most all of them.
  std::size_t bytes_from(int member, int blocks) const {
    return first_of_[std::size_t(member + blocks)] - first_of_[std::size_t(member)];
  }
  std::size_t block() const { return block_; }      // bytes of the longest one
  std::size_t message() const { return message_; }  // bytes of one message of blocks

  // Offsets in scratch memory, in bytes: one place for each member's block, then the block of this
  // rank's own sum, then one outgoing and one incoming message.
  std::size_t place(int number) const { return block_ * std::size_t(number); }
  std::size_t own() const { return block_ * lengths_.size(); }
  std::size_t outgoing() const { return own() + block_; }
  std::size_t incoming() const { return outgoing() + message_; }
  std::size_t total() const { return incoming() + message_; }

 private:
  std::vector<comm::Range> chunks_;    // by member
  std::vector<std::size_t> lengths_;   // by member
  std::vector<std::size_t> first_of_;  // bytes before a member, counted around twice
  std::size_t block_, message_;
};

}  // namespace slimpi::inter
