// SPDX-License-Identifier: BSD-3-Clause
// The message buffers of one process, in a ring. Block after block of call after call passes
// through the next buffer, in the same places on all ranks of the node, because all count the same
// calls.
//
// A short call has short buffers. So many calls pass until a place is written again, and the caches
// of the core that read it have lost it by then: writing takes longer while another core still
// holds the line. Calls of more than a quarter of the longest buffer gain little by that where they
// follow one another, and lose where other work fills the caches in between (docs/DESIGN.md).
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/round_up.h"

namespace slimpi::intra {

// Lengths and places are in floats. A buffer's length is a power of two, and its place a multiple
// of its length. So any kDepth buffers in sequence lie apart from each other.
class BufferRing {
 public:
  static constexpr int kDepth = 3;  // blocks in flight

  // `longest`: of one buffer; a power of two, kShortest or more.
  explicit BufferRing(std::uint64_t longest) : longest_(longest) {}

  std::uint64_t longest() const { return longest_; }
  std::uint64_t floats() const { return kDepth * longest_; }

  // The buffers of one call.
  class Buffers {
   public:
    Buffers() = default;
    std::uint64_t place(std::uint64_t block) const { return (first_ + block * length_) % floats_; }

   private:
    friend class BufferRing;
    Buffers(std::uint64_t first, std::uint64_t length, std::uint64_t floats)
        : first_(first), length_(length), floats_(floats) {}
    std::uint64_t first_ = 0, length_ = 0, floats_ = 1;
  };

  // For a call whose blocks have `block` floats at most. Changes nothing.
  Buffers next(std::uint64_t block) const {
    const bool is_long = block > longest_ / 4;
    const std::uint64_t length = is_long ? longest_ : std::max(std::bit_ceil(block), kShortest);
    return {round_up(passed_, length), length, floats()};
  }

  // The call has used so many buffers. Of the longest, one is left out: calls of two blocks then
  // use the same two again and again, and the third does not take room in the caches.
  void pass(const Buffers& used, std::uint64_t blocks) {
    passed_ = used.first_ + (blocks + (used.length_ == longest_ ? 1 : 0)) * used.length_;
  }

 private:
  static constexpr std::uint64_t kShortest = 1 << 10;

  std::uint64_t longest_;
  std::uint64_t passed_ = 0;  // floats of all buffers so far, without end
};

}  // namespace slimpi::intra
