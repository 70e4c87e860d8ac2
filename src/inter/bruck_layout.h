// SPDX-License-Identifier: BSD-3-Clause
// Where the Bruck exchange keeps its blocks and messages in scratch memory, and what each block
// holds; from the size of the sum alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "inter/schedule.h"

namespace slimpi::inter {

// The most bytes of one message, unless a single block is longer.
constexpr std::size_t kMostInMessage = 256 << 10;

// The layout of the scratch memory, as offsets in bytes: one place for each member's block, then
// the block of this rank's own sum, then one outgoing and one incoming message. A block is a
// message of reduce_scatter_allgather.h with its header.
struct BruckShape {
  BruckShape(const kernels::Format& format_, std::uint64_t count_, int group_size_);

  comm::Range chunk(int owner) const { return comm::chunk_of(count, group_size, owner, align); }
  // Bytes of the block for a member's chunk; 0 if the chunk is empty.
  std::size_t bytes_of(int owner) const;
  std::size_t place(int number) const { return block * std::size_t(number); }
  std::size_t own() const { return place(group_size); }
  std::size_t outgoing() const { return own() + block; }
  std::size_t incoming() const { return outgoing() + message; }
  std::size_t total() const { return incoming() + message; }

  const kernels::Format format;
  const std::uint64_t count;
  const int group_size;
  const std::uint64_t align;
  const std::size_t block, message;  // bytes of the longest block; bytes of one message of blocks
};

// The shape of one size, and what each member's block holds.
class BruckLayout : public ExchangeLayout {
 public:
  explicit BruckLayout(const ExchangeSize& size);

  std::size_t bytes() const override;
  const comm::Range& chunk(int owner) const { return chunks_[std::size_t(owner)]; }
  // Bytes of the block for a member's chunk; 0 if the chunk is empty.
  std::size_t bytes_of(int owner) const { return lengths_[std::size_t(owner)]; }
  // Bytes of the blocks of `blocks` consecutive members from `member` on, at most all of them.
  std::size_t bytes_from(int member, int blocks) const {
    return first_of_[std::size_t(member + blocks)] - first_of_[std::size_t(member)];
  }

  const BruckShape shape;

 private:
  std::vector<comm::Range> chunks_;    // by member
  std::vector<std::size_t> lengths_;   // by member
  std::vector<std::size_t> first_of_;  // bytes before a member, counted around twice
};

}  // namespace slimpi::inter
